import { randomBytes } from 'node:crypto';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { EventType, WebhookService } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { findActiveLog, LogLock, listLogs } from '../../../../src/server/log/store/logs.js';
import { startApp } from '../../../support/app.js';
import { callers, livesOn } from '../../../support/calling/surfaces.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { KEYS, startApiServer } from '../../../support/servers/api-server.js';
import { until } from '../../../support/until.js';
import { creation } from '../../rpc/samples.js';

const app = await startApp(t, { isProxied: true });
const owner = await newKey(app);
const surfaces = app.surfaces().filter(({ name }) => name !== 'REST');
const { createAttestation } = AttestationService.method;
/** As headers alone, so that it is the server that ends the call. */
const SOON = { 'grpc-timeout': '300m', 'connect-timeout-ms': '300' };

let keys = 0;
function freshKey(): { 'idempotency-key': string } {
  return { 'idempotency-key': `deadline-${keys++}` };
}

async function countSubmissions(artifact: string): Promise<number> {
  const rows = await app.pool`SELECT FROM submission WHERE artifact_sha256 = ${Buffer.from(artifact, 'hex')}`;
  return rows.length;
}

/** Holds every write to the live log up. @returns the function that lets them go on */
async function holdWrites(): Promise<() => Promise<void>> {
  const log = findActiveLog(await listLogs(app.pool), Environment.LIVE);
  const connection = await app.pool.reserve();
  await connection`SELECT pg_advisory_lock(${LogLock.WRITE}, ${log?.id ?? 0})`;
  return async () => {
    await connection`SELECT pg_advisory_unlock_all()`;
    connection.release();
  };
}

/** Sends again until it has come about: a slow machine may spend the whole deadline before the database is asked. */
async function sendUntil(done: Promise<void> | undefined, send: () => Promise<unknown>): Promise<void> {
  let isDone = false;
  void done?.then(() => {
    isDone = true;
  });
  await until('the database has it', async () => {
    if (!isDone) await send();
    return isDone;
  });
}

t.test(
  'a write whose deadline passed before it was stored is there once, for a retry with its key',
  async (t) => {
    const release = await holdWrites();
    const calls = surfaces.map((surface) => {
      const artifact = randomBytes(32).toString('hex');
      return { ...surface, headers: freshKey(), artifact, input: creation(artifact) };
    });
    const late = calls.map(({ call, input, headers }) =>
      call(createAttestation, input, owner.key, { ...headers, ...SOON }),
    );
    for (const [index, { code, grpcCode, requestId, message }] of (await Promise.all(late)).entries()) {
      t.equal(code, 'service.deadline_exceeded', calls[index]?.name ?? '');
      t.equal(grpcCode, 4);
      t.match(requestId, /^req_/);
      t.match(message, /deadline/);
    }
    await release();
    for (const { name, call, input, headers, artifact } of calls) {
      const retried = await call(createAttestation, input, owner.key, headers);
      t.equal(retried.code, 'ok', name);
      t.equal(await countSubmissions(artifact), 1, `${name}: once`);
      const again = await call(createAttestation, input, owner.key, headers);
      t.equal(again.response.id, retried.response.id);
      t.equal(again.headers['idempotent-replayed'], 'true');
    }
  },
);

t.test('a write whose deadline passed after it was stored is neither lost nor made twice', async (t) => {
  for (const { name, call } of surfaces) {
    const artifact = randomBytes(32).toString('hex');
    const headers = freshKey();
    const input = creation(artifact);
    const stored = app.databaseProxy?.holdNext('before the answer arrives', (sent) =>
      sent.includes(artifact),
    );
    const late = () => call(createAttestation, input, owner.key, { ...headers, ...SOON });
    t.equal((await late()).code, 'service.deadline_exceeded', name);
    await sendUntil(stored, late);
    t.equal(await countSubmissions(artifact), 1);
    app.databaseProxy?.cut();
    const retried = await until('it is answered', async () => {
      const outcome = await call(createAttestation, input, owner.key, headers);
      return outcome.code === 'ok' && outcome;
    });
    t.equal(retried.headers['idempotent-replayed'], 'true');
    t.equal(await countSubmissions(artifact), 1, `${name}: still once`);
  }
});

t.test(
  'a webhook whose deadline passed while it was stored is there once, for a retry with its key',
  async (t) => {
    const { createWebhook } = WebhookService.method;
    for (const { name, call } of surfaces) {
      const { key, projectId } = await newKey(app);
      const headers = freshKey();
      const url = `http://127.0.0.1:9/${projectId}`;
      const input = { url, events: [EventType.ATTESTATION_WITNESSED] };
      const stored = app.databaseProxy?.holdNext('before the answer arrives', (sent) => sent.includes(url));
      const late = () => call(createWebhook, input, key, { ...headers, ...SOON });
      t.equal((await late()).code, 'service.deadline_exceeded', name);
      await sendUntil(stored, late);
      app.databaseProxy?.cut();
      const retried = await until('it is stored', async () => {
        const outcome = await call(createWebhook, input, key, headers);
        return outcome.code === 'ok' && outcome;
      });
      const rows = await app.pool`SELECT id FROM webhook WHERE project_id = ${projectId}`;
      t.same(rows, [{ id: retried.response.id }]);
    }
  },
);

t.test('an expired deadline is reported, and nothing is executed', async (t) => {
  for (const { name, call } of surfaces) {
    const artifact = randomBytes(32).toString('hex');
    const headers = { 'grpc-timeout': '0m', 'connect-timeout-ms': '0' };
    const { code } = await call(createAttestation, creation(artifact), owner.key, headers);
    t.equal(code, 'service.deadline_exceeded', name);
    await call(InfoService.method.getMe, {}, owner.key);
    t.equal(await countSubmissions(artifact), 0, name);
  }
});

t.test('an invalid deadline is rejected', async (t) => {
  for (const { name, call } of surfaces) {
    for (const wrong of ['x', '-1', '1', '1.5S', '123456789S', '1h', '10S 10S']) {
      const headers = { 'grpc-timeout': wrong, 'connect-timeout-ms': `${wrong}!` };
      const { code } = await call(InfoService.method.getHealth, {}, owner.key, headers);
      t.equal(code, 'request.invalid', `${name}: ${wrong}`);
    }
  }
});

t.test(
  'a call that times out gets an error on every surface, and its late response is dropped',
  async (t) => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const api = await startApiServer(t, { gate, limits: { responseTimeoutMs: 500 } });
    for (const caller of callers(api.baseUrl)) {
      t.teardown(caller.close);
      const outcome = await caller.call(
        BatchService.method.getBatch,
        { id: 'btc_gate' },
        {
          headers: { authorization: `Bearer ${KEYS.all}` },
        },
      );
      t.equal(outcome.code, 'service.deadline_exceeded', caller.name);
      t.match(outcome.headers['x-ratelimit-limit'], /^\d+$/, caller.name);
    }
    const answer = await fetch(`${api.baseUrl}/v1/batches/btc_gate`, {
      headers: { authorization: `Bearer ${KEYS.all}` },
    });
    t.equal(answer.status, 504);
    t.match(await answer.json(), { error: { code: 'service.deadline_exceeded' } });
    open();
    await livesOn(t, api);
    t.same(
      api.lines.filter(({ level }) => level === 'error'),
      [],
    );
  },
);

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
