/** The status of an export, and what is stored of its credentials. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ExportService } from '../../../../gen/attestation/v1/exports_pb.js';
import { decryptSecret } from '../../../../src/server/keys/encryption.js';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { objectsOf } from '../../../support/exports/exports.js';
import { NOTHING } from '../../rpc/samples.js';
import { submit } from '../../rpc/submitting.js';
import { assertSecretKept } from './export-secrets.js';
import { SECRET, setExportScene } from './exporting.js';

const scene = await setExportScene(t);
const { app, store, make } = scene;
const surfaces = app.surfaces();
const { listExports } = ExportService.method;

t.test('credentials are encrypted at rest, and erased when the export is stopped', async (t) => {
  const owner = await newKey(app);
  const { id } = await make(owner);
  const read = async () => {
    const [row] = await app.pool<{ text: string; secrets: Buffer }[]>`
      SELECT x::text AS text, secrets FROM export x WHERE id = ${id}`;
    if (row === undefined) throw new Error('there is no row');
    return row;
  };
  const { text, secrets } = await read();
  t.notMatch(text, SECRET);
  for (const form of [SECRET, Buffer.from(SECRET).toString('base64')]) t.notOk(secrets.includes(form));
  const keys = deriveKeyRing(app.config.secrets.secretKeys, 'encryption');
  t.same(JSON.parse(decryptSecret(keys, secrets, id)), { secretAccessKey: SECRET });
  t.throws(() => decryptSecret(keys, secrets, NOTHING.exportId), 'they belong to this export');
  await app.rest(`/v1/exports/${id}`, { apiKey: owner.key, method: 'DELETE' });
  t.equal((await read()).secrets.length, 0);
});

t.test('the status has the lag, the last deliveries and the last failure', async (t) => {
  const [owner, stranger] = [await newKey(app), await newKey(app)];
  const { id } = await make(owner, { compression: 'gzip' });
  const get = async () => (await app.rest(`/v1/exports/${id}`, { apiKey: owner.key })).json;
  const { logIndex } = await submit(app, owner);
  await app.drain();
  const shipped = await get();
  const [[object = '', bytes = Buffer.alloc(0)] = []] = await objectsOf(store, id);
  t.match(shipped, { status: 'active', lag_batches: 0, lag_seconds: 0, shipped_through: logIndex + 1 });
  t.match(shipped.recent_deliveries, [
    {
      batch_id: /^btc_/,
      object,
      revision: 1,
      bytes: bytes.length,
      submissions: 1,
      attempts: 1,
      status: 'delivered',
      at: /T/,
    },
  ]);
  t.match(object, new RegExp(`^copies/${id}/live/\\d{4}/\\d\\d/\\d\\d/btc_\\w{26}\\.jsonl\\.gz$`));
  const [{ batch_id: batchId } = {}] = shipped.recent_deliveries as JsonObject[];
  for (const { name, call } of surfaces) {
    const { response } = await call(listExports, { batchId: String(batchId) }, owner.key);
    t.match(response, { data: [{ id, recentDeliveries: [{ batchId, object }] }] }, name);
    for (const [other, by] of [
      [NOTHING.batchId, owner],
      [String(batchId), stranger],
    ] as const) {
      const none = await call(listExports, { batchId: other }, by.key);
      t.same([none.code, none.response.data ?? []], ['ok', []], name);
    }
  }
  store.fail(({ operation }) =>
    operation === 'PutObject' ? { kind: 'refuse', code: 'AccessDenied' } : undefined,
  );
  t.teardown(() => store.fail(() => undefined));
  await submit(app, owner);
  await app.drain();
  const failing = await get();
  t.match(failing, {
    status: 'active',
    lag_batches: 1,
    shipped_through: logIndex + 1,
    consecutive_failures: 1,
    failing_since: /T/,
    next_attempt_at: /T/,
    last_error: /AccessDenied/,
  });
  t.match(failing.recent_deliveries, [
    { status: 'pending', attempts: 1, error: failing.last_error },
    { status: 'delivered' },
  ]);
  t.notMatch(JSON.stringify(failing), SECRET);
  const list = await app.rest('/v1/exports', { apiKey: owner.key });
  t.match(list.json.data, [{ id, lag_batches: 1, recent_deliveries: [] }], 'lists have no deliveries');
  const stopped = await app.rest(`/v1/exports/${id}`, { apiKey: owner.key, method: 'DELETE' });
  t.match(stopped.json, { status: 'stopped', consecutive_failures: 0 });
  for (const member of ['last_error', 'failing_since', 'next_attempt_at']) t.notOk(member in stopped.json);
});

t.test('no answer, log line or table has a secret', async (t) => {
  await assertSecretKept(t, scene, 20);
});
