/** SIGKILL and broken connections while metadata is corrected or redacted, by real processes. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { auditOf } from '../../server/rpc/auditing.js';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf } from '../../support/breaking/statement-matchers.js';
import { setScene } from '../../support/fault-fixture.js';
import { findTraces, readFiles } from '../../support/judging/traces.js';
import { someOf } from '../../support/long.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { PROCESSES, untilGone, untilWitnessed } from '../../support/wait-for-idle.js';

const scene = await setScene(t, { env: { LOG_LEVEL: 'trace' } });
const { installation, pool, servers, apiKey } = scene;
const { proxy } = servers.postgres;
const marker = `trace${randomBytes(12).toString('hex')}`;
const INVALID = { schema: 'purl', note: marker };
const VALID = { schema: 'purl', purl: `pkg:npm/${marker}@1.0.0` };
const processes: ServiceProcess[] = [];

async function startApi(): Promise<ServiceProcess> {
  const api = await installation.startApi();
  processes.push(api);
  return api;
}

let api = await startApi();

type Answer = { status: number | 'broken'; json: Record<string, unknown>; isReplayed: boolean };

/** One request; a connection that breaks is an answer as well. */
async function send(
  { baseUrl }: ServiceProcess,
  method: string,
  path: string,
  { key, body }: { key?: string; body?: object } = {},
): Promise<Answer> {
  try {
    const answer = await fetch(`${baseUrl}/v1/attestations${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const isReplayed = answer.headers.get('idempotent-replayed') === 'true';
    return { status: answer.status, json: (await answer.json()) as Answer['json'], isReplayed };
  } catch {
    return { status: 'broken', json: {}, isReplayed: false };
  }
}

async function submitInvalid(at: ServiceProcess): Promise<string> {
  const body = { artifact: { sha256: 'ab'.repeat(32) }, metadata: INVALID, validation: 'lenient' };
  const { json } = await send(at, 'POST', '', { body });
  return String(json.id);
}

type Change = { what: string; action: AuditAction; method: string; body?: object; state: string };
const CHANGES: Change[] = [
  {
    what: 'corrects',
    action: AuditAction.ATTESTATION_CORRECTED,
    method: 'PATCH',
    body: { metadata: VALID },
    state: 'valid',
  },
  { what: 'redacts', action: AuditAction.ATTESTATION_REDACTED, method: 'DELETE', state: 'redacted' },
];
const BREAKS: Break[] = ['before the answer arrives', 'before the request arrives'];

for (const { what, action, method, body, state } of CHANGES) {
  for (const when of someOf(BREAKS, 1)) {
    for (const how of ['is killed', 'loses its connection'] as const) {
      t.test(
        `an API that ${what} and ${how} at the commit, ${when}, has done all of it or nothing`,
        async (t) => {
          const id = await submitInvalid(api);
          const request = { key: `${method}-${id}`, ...(body && { body }) };
          const spring = how === 'is killed' ? proxy.holdNext : proxy.breakNext;
          // By the entry's id: nothing else writes here.
          const sprung = spring(when, commitOf('aud_'));
          const answer = send(api, method, `/${id}`, request);
          await sprung;
          if (how === 'is killed') await api.kill();
          t.equal((await answer).status, how === 'is killed' ? 'broken' : 503);
          const isDone = when === 'before the answer arrives';
          t.same(
            (await auditOf({ pool }, id)).map((entry) => entry.action),
            isDone ? [action] : [],
          );

          if (how === 'is killed') api = await startApi();
          t.equal((await send(api, 'GET', `/${id}`)).json.metadata_state, isDone ? state : 'invalid');
          const again = await send(api, method, `/${id}`, request);
          t.match(again, { status: 200, json: { id, metadata_state: state }, isReplayed: isDone });
          t.same(
            (await auditOf({ pool }, id)).map((entry) => entry.action),
            [action],
            'once',
          );
        },
      );
    }
  }
}

t.test('APIs killed under many changes at once leave each of them whole', async (t) => {
  const first = api;
  const ids = await Promise.all(Array.from({ length: 16 }, () => submitInvalid(first)));
  const second = await startApi();
  const work = Promise.all(
    ids.flatMap((id, i) =>
      [first, second].flatMap((api) => [
        send(api, 'PATCH', `/${id}`, { body: { metadata: VALID }, key: `patch-${id}` }),
        ...(i % 2 === 0 ? [send(api, 'DELETE', `/${id}`, { key: `delete-${id}` })] : []),
      ]),
    ),
  );
  await Promise.race([work, send(second, 'GET', `/${ids.at(-1)}`)]);
  await Promise.all([first.kill(), second.kill()]);
  await work;
  await untilGone(pool, PROCESSES);

  api = await startApi();
  for (const [i, id] of ids.entries()) {
    const { json } = await send(api, 'GET', `/${id}`);
    const entries = (await auditOf({ pool }, id)).map(({ action }) => action);
    const claims = await pool<{ key: string }[]>`SELECT key FROM idempotency_key WHERE resource_id = ${id}`;
    const actions = { patch: AuditAction.ATTESTATION_CORRECTED, delete: AuditAction.ATTESTATION_REDACTED };
    for (const [name, action] of Object.entries(actions)) {
      const done = entries.filter((entry) => entry === action).length;
      const claimed = claims.filter(({ key }) => key === `${name}-${id}`).length;
      // A second redaction finds nothing to do, and that is its effect.
      t.equal(done, claimed, `${name} of ${id}: entry and claim`);
    }
    const isRedacted = entries.includes(AuditAction.ATTESTATION_REDACTED);
    const isCorrected = entries.includes(AuditAction.ATTESTATION_CORRECTED);
    t.equal(json.metadata_state, isRedacted ? 'redacted' : isCorrected ? 'valid' : 'invalid');
    const isWanted = i % 2 === 0;
    const { status } = await send(api, 'DELETE', `/${id}`, { key: `delete-${id}` });
    t.equal(status, 200);
    t.ok(isWanted || !isRedacted, 'nothing is redacted that nobody asked for');
  }
});

t.test('the log is as it was, and no file of NATS, log or metric has any metadata', async (t) => {
  const worker = await installation.startWorker();
  processes.push(worker);
  await submitInvalid(api);
  await untilWitnessed(pool);
  const metrics = await Promise.all(
    [api, worker].map(async ({ opsUrl }) => (await fetch(`${opsUrl}/metrics`)).text()),
  );
  await api.stop();
  await worker.stop();
  await scene.assertConsistent(t, []);
  const secrets = [Buffer.from(marker)];
  const lines = processes.flatMap((process) => process.lines.map((line) => JSON.stringify(line)));
  t.ok(lines.length > processes.length);
  t.same(findTraces(lines, secrets), []);
  t.same(findTraces(metrics, secrets), []);
  t.same(findTraces(await readFiles(servers.nats.dir), secrets), []);
});
