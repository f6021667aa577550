/** How to get the errors that no operation documents, or that no request alone can bring about. */
import type { Test } from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { ProjectService } from '../../gen/attestation/admin/v1/projects_pb.js';
import { SubmissionService } from '../../gen/attestation/admin/v1/submissions_pb.js';
import { TrustRuleService } from '../../gen/attestation/admin/v1/trust_rules_pb.js';
import { TufService } from '../../gen/attestation/admin/v1/tuf_pb.js';
import { WitnessService } from '../../gen/attestation/admin/v1/witnesses_pb.js';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { makeRoot, metadataText } from '../../src/server/public/tuf/metadata.js';
import { creation } from '../server/rpc/samples.js';
import { submit } from '../server/rpc/submitting.js';
import { type App, startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { exchangeRaw, parseRaw } from '../support/calling/raw-http.js';
import { callers, type Outcome } from '../support/calling/surfaces.js';
import { newKey } from '../support/calling/test-keys.js';
import type { ErrorAnswer } from '../support/judging/envelope.js';
import { signedStatement } from '../support/scitt/signed-statement.js';
import { KEYS, startApiServer } from '../support/servers/api-server.js';

/** Answers by REST and outcomes elsewhere, each of the same error. */
export type Provoked = { rest: ErrorAnswer[]; outcomes: { name: string; outcome: Outcome }[] };

const NEVER_WAS = 'prj_01JX5WQ4ZZZZZZZZZZZZZZZZZZ';
const SHA256 = 'ab'.repeat(32);
const { createAttestation } = AttestationService.method;

export const OTHER_ERRORS: Readonly<Record<string, (t: Test, app: App) => Promise<Provoked>>> = {
  'route.not_found': async (_t, app) => byRest(await app.rest('/v1/nothing-like-it')),
  'request.method_not_allowed': async (_t, app) =>
    byRest(
      await app.rest('/v1/attestations', { method: 'PUT' }),
      await app.rest('/openapi.json', { method: 'PUT' }),
    ),
  'request.timeout': async (t) => {
    const { port } = await startApiServer(t, { limits: { headersTimeoutMs: 100, requestTimeoutMs: 100 } });
    return byRest(readRaw(await exchangeRaw(port, 'GET /v1/service/health HTTP/1.1\r\nhost')));
  },
  'request.headers_too_large': async (t) => {
    const { port } = await startApiServer(t);
    return byRest(
      readRaw(await exchangeRaw(port, `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)),
    );
  },
  'request.unsupported_transfer_coding': async (t) => {
    const { port } = await startApiServer(t);
    const head = 'POST /v1/attestations HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n';
    return byRest(readRaw(await exchangeRaw(port, head)));
  },
  'scitt.malformed': byStatement(Buffer.from('d2')),
  'scitt.bad_algorithm': byStatement(signedStatement({ algorithm: 5 })),
  'scitt.payload_missing': byStatement(signedStatement({ payload: null })),
  'scitt.rejected': byStatement(signedStatement({ header: new Map([[2, [99]]]) })),
  'idempotency.in_progress': async (_t, app) => {
    const owner = await newKey(app);
    const holder = await app.pool.reserve();
    await holder`SELECT pg_advisory_lock(hashtextextended(${`${owner.id} stuck`}, 0))`;
    const headers = { 'idempotency-key': 'stuck' };
    const provoked = await everywhere(app, owner.key, creation(SHA256), headers);
    await holder`SELECT pg_advisory_unlock_all()`;
    holder.release();
    return provoked;
  },
  'service.internal': async (t) => {
    const app = await startApp(t);
    await app.pool`ALTER TABLE submission ADD CONSTRAINT no_bad CHECK (metadata NOT LIKE '%bad-row%')`;
    const { key } = await newKey(app);
    const metadata = { schema: 'purl', purl: 'pkg:npm/a', note: 'bad-row' };
    return everywhere(app, key, creation(SHA256, metadata));
  },
  'service.deadline_exceeded': async (t) => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { baseUrl } = await startApiServer(t, { gate, limits: { responseTimeoutMs: 50 } });
    const authorization = `Bearer ${KEYS.all}`;
    const answer = await fetch(`${baseUrl}/v1/batches/btc_gate`, { headers: { authorization } });
    const json = (await answer.json()) as ErrorAnswer['json'];
    const outcomes: Provoked['outcomes'] = [];
    for (const { name, isRest, call, close } of callers(baseUrl)) {
      t.teardown(close);
      const id = { id: 'btc_gate' };
      if (isRest) continue;
      outcomes.push({
        name,
        outcome: await call(BatchService.method.getBatch, id, { headers: { authorization } }),
      });
    }
    open();
    const headers = Object.fromEntries(answer.headers);
    return { rest: [{ status: answer.status, headers, json }], outcomes };
  },
  'project.not_found': async (_t, app) => {
    const { surfaces, token } = adminOf(app);
    const { getProject } = ProjectService.method;
    return byRpc(surfaces, ({ call }) => call(getProject, { id: NEVER_WAS }, token));
  },
  'api_key.not_found': async (_t, app) => {
    const { surfaces, token } = adminOf(app);
    const { getApiKey } = ApiKeyService.method;
    return byRpc(surfaces, ({ call }) => call(getApiKey, { id: NEVER_WAS.replace('prj', 'key') }, token));
  },
  'trust_rule.not_found': async (_t, app) => {
    const { surfaces, token } = adminOf(app);
    const { getTrustRule } = TrustRuleService.method;
    return byRpc(surfaces, ({ call }) => call(getTrustRule, { id: NEVER_WAS.replace('prj', 'tru') }, token));
  },
  'witness.not_found': async (_t, app) => {
    const { surfaces, token } = adminOf(app);
    const { askWitness } = WitnessService.method;
    return byRpc(surfaces, ({ call }) => call(askWitness, { name: 'nobody' }, token));
  },
  'tuf.conflict': async (_t, app) => {
    const { surfaces, token } = adminOf(app);
    const keys = { rootKeys: [new Uint8Array(32)], threshold: 1, onlineKey: new Uint8Array(32) };
    const root = metadataText(makeRoot(5, keys, Date.now()));
    const input = { root, targets: '{}', files: [{ name: 'a', content: '{}' }] };
    return byRpc(surfaces, ({ call }) => call(TufService.method.publishTuf, input, token));
  },
  'statement.not_stored': async (_t, app) => {
    const { surfaces, token } = adminOf(app);
    const { id } = await submit(app, await newKey(app));
    const { eraseStatement } = SubmissionService.method;
    return byRpc(surfaces, ({ call }) => call(eraseStatement, { id }, token));
  },
  'api_key.not_active': async (_t, app) => {
    const { surfaces, token, ask } = adminOf(app);
    const { id } = await newKey(app);
    const { revokeApiKey, rotateApiKey } = ApiKeyService.method;
    await ask(revokeApiKey, { id });
    return byRpc(surfaces, ({ call }) => call(rotateApiKey, { id }, token));
  },
};

function byRest(...rest: ErrorAnswer[]): Provoked {
  return { rest, outcomes: [] };
}

async function byRpc<S extends { name: string }>(
  surfaces: readonly S[],
  call: (surface: S) => Promise<Outcome>,
): Promise<Provoked> {
  const outcomes = await Promise.all(
    surfaces.map(async (surface) => ({ name: surface.name, outcome: await call(surface) })),
  );
  return { rest: [], outcomes };
}

/** One creation by every surface at once. */
async function everywhere(
  app: App,
  apiKey: string,
  body: ReturnType<typeof creation>,
  headers: Record<string, string> = {},
): Promise<Provoked> {
  const others = app.surfaces().filter(({ name }) => name !== 'REST');
  const [rest, { outcomes }] = await Promise.all([
    app.rest('/v1/attestations', { apiKey, headers, body }),
    byRpc(others, ({ call }) => call(createAttestation, body, apiKey, headers)),
  ]);
  return { rest: [rest], outcomes };
}

function readRaw(text: string): ErrorAnswer {
  const { status, headers, body } = parseRaw(text);
  return { status, headers, json: JSON.parse(body) };
}

/** Registers what is no statement that the service takes. */
function byStatement(body: Uint8Array): (t: Test, app: App) => Promise<Provoked> {
  return async (_t, app) => {
    const { key: apiKey } = await newKey(app);
    return byRest(
      await app.rest('/entries', { apiKey, body, headers: { 'content-type': 'application/cose' } }),
    );
  };
}
