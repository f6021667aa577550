import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import {
  DestinationKind,
  ExportCompression,
  ExportService,
  ExportStart,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { decryptSecret } from '../../../../src/server/keys/encryption.js';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { linesOf, objectsOf } from '../../../support/exports/exports.js';
import { BUCKET, OWNER } from '../../../support/exports/s3/fixture.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { dumpTables, findTraces } from '../../../support/judging/traces.js';
import { auditOf } from '../../rpc/auditing.js';
import { idsOfPages } from '../../rpc/paging.js';
import { NOTHING } from '../../rpc/samples.js';
import { submit } from '../../rpc/submitting.js';
import { type Json, SECRET, setExportScene } from './exporting.js';

const scene = await setExportScene(t);
const { app, store, make, refusal, destination } = scene;
const surfaces = app.surfaces();
const { createExport, getExport, listExports, testExport, deleteExport } = ExportService.method;

const DESTINATION = {
  kind: DestinationKind.S3,
  bucket: BUCKET,
  prefix: 'copies',
  endpoint: store.url,
  ...OWNER,
};

t.test('an export is created, read, listed, tested and deleted on every protocol', async (t) => {
  for (const { name, call } of surfaces) {
    const owner = await newKey(app);
    const input = {
      destination: DESTINATION,
      filter: { schema: 'purl' },
      start: ExportStart.BEGINNING,
      compression: ExportCompression.GZIP,
    };
    const { response, code, status } = await call(createExport, input, owner.key);
    t.equal(code, 'ok', name);
    t.equal(status, name === 'REST' ? 201 : 0);
    const { id, createdAt, ...rest } = response as Json;
    t.match(id, /^exp_[0-9A-HJKMNP-TV-Z]{26}$/);
    t.match(createdAt, /^\d{4}-\d\d-\d\dT/);
    t.same(rest, {
      destination: {
        kind: 'DESTINATION_KIND_S3',
        bucket: BUCKET,
        prefix: 'copies',
        endpoint: store.url,
        accessKeyId: OWNER.accessKeyId,
      },
      filter: { schema: 'purl' },
      environment: 'ENVIRONMENT_LIVE',
      start: 'EXPORT_START_BEGINNING',
      compression: 'EXPORT_COMPRESSION_GZIP',
      status: 'EXPORT_STATUS_ACTIVE',
      ...(rest.shippedThrough === undefined ? {} : { shippedThrough: rest.shippedThrough }),
    });
    const before = scene.probed().length;
    t.match((await call(testExport, { id }, owner.key)).response, { id, ...rest }, `${name} tests it`);
    t.equal(scene.probed().length, before, 'by the same probe object');
    t.match((await call(getExport, { id }, owner.key)).response, { id, ...rest });
    t.match((await call(listExports, {}, owner.key)).response, { data: [{ id, ...rest }] });
    const deleted = await call(deleteExport, { id }, owner.key);
    const stopped = { ...rest, id, status: 'EXPORT_STATUS_STOPPED', stoppedAt: /T/ };
    t.match(deleted, { code: 'ok', response: stopped }, `${name} deletes it`);
    t.match((await call(getExport, { id }, owner.key)).response, stopped, 'it is shown after that');
    t.match((await call(listExports, {}, owner.key)).response, { data: [stopped] }, 'and listed');
    t.match((await call(deleteExport, { id }, owner.key)).response, stopped, 'and deleted again');
    const tested = await call(testExport, { id }, owner.key);
    t.match([tested.code, tested.message], ['export.invalid_destination', /stopped/], 'but not tested');
  }
});

t.test('omitted fields of a request have their defaults', async (t) => {
  const made = await make(await newKey(app));
  t.match(made, { start: 'now', compression: 'none', status: 'active', recent_deliveries: [] });
  t.match(made, { lag_batches: 0, lag_seconds: 0, consecutive_failures: 0 });
  for (const name of ['filter', 'last_error', 'failing_since', 'next_attempt_at', 'stopped_at'])
    t.notOk(name in made, name);
});

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

t.test('an export is visible to its project and environment only', async (t) => {
  const owner = await newKey(app);
  const { id } = await make(owner);
  const others = [
    await newKey(app),
    await newKey(app, { projectId: owner.projectId, environment: Environment.TEST }),
  ];
  for (const { name, call } of surfaces) {
    for (const { key } of others) {
      for (const method of [getExport, testExport, deleteExport]) {
        const { code, status, grpcCode } = await call(method as typeof getExport, { id }, key);
        t.equal(code, 'export.not_found', `${method.name} by ${name}`);
        t.equal(name === 'REST' ? status : grpcCode, name === 'REST' ? 404 : 5);
      }
      t.notMatch((await call(listExports, {}, key)).response, { data: [{}] });
    }
    const unknown = await call(getExport, { id: NOTHING.exportId }, owner.key);
    t.equal(unknown.code, 'export.not_found');
    t.match((await call(getExport, { id }, owner.key)).response, { status: 'EXPORT_STATUS_ACTIVE' });
  }
});

t.test(
  'reading requires exports:read, changes exports:write, and creation attestations:read as well',
  async (t) => {
    const { projectId } = await newKey(app);
    const keyWith = (...scopes: string[]) => newKey(app, { projectId, scopes });
    const creator = await keyWith('exports:write', 'attestations:read');
    const writer = await keyWith('exports:write');
    const reader = await keyWith('exports:read');
    const stranger = await keyWith('attestations:write', 'attestations:read', 'webhooks:write');
    for (const { name, call } of surfaces) {
      const { id } = await make(creator);
      const codes = async ({ key }: { key: string }) => {
        const all: string[] = [];
        for (const method of [getExport, listExports, testExport, createExport, deleteExport]) {
          const input =
            method === createExport ? { destination: DESTINATION } : method === listExports ? {} : { id };
          all.push((await call(method as typeof getExport, input, key)).code);
        }
        return all;
      };
      const denied = 'auth.insufficient_scope';
      t.same(await codes(reader), ['ok', 'ok', denied, denied, denied], `${name}: reader`);
      t.same(await codes(stranger), [denied, denied, denied, denied, denied], `${name}: stranger`);
      t.same(await codes(writer), [denied, denied, 'ok', denied, 'ok'], `${name}: writer`);
      t.same(
        await codes(creator),
        [denied, denied, 'export.invalid_destination', 'ok', 'ok'],
        `${name}: creator`,
      );
    }
  },
);

t.test('an export of a test key ships test submissions only, one of a live key live ones', async (t) => {
  const live = await newKey(app);
  const test = await newKey(app, { projectId: live.projectId, environment: Environment.TEST });
  const owners = [
    { owner: live, environment: 'live' },
    { owner: test, environment: 'test' },
  ];
  const made = await Promise.all(owners.map(({ owner }) => make(owner)));
  const submitted = [];
  for (const { owner } of owners)
    submitted.push((await Promise.all([submit(app, owner), submit(app, owner)])).map(({ id }) => id).sort());
  await app.drain();
  for (const [i, { environment }] of owners.entries()) {
    const id = String(made[i]?.id);
    const lines = await linesOf(store, id);
    t.same(lines.map(({ submission }) => submission.id).sort(), submitted[i]);
    for (const { submission } of lines) t.equal(submission.environment, environment);
    for (const name of (await objectsOf(store, id)).keys()) t.match(name, `${id}/${environment}/`);
  }
});

t.test('the audit log says who created and stopped an export, and nothing secret', async (t) => {
  const owner = await newKey(app);
  const { id } = await make(owner);
  await app.rest(`/v1/exports/${id}/test`, { apiKey: owner.key, body: {} });
  await app.rest(`/v1/exports/${id}`, { apiKey: owner.key, method: 'DELETE' });
  await app.rest(`/v1/exports/${id}`, { apiKey: owner.key, method: 'DELETE' });
  const entries = await auditOf(app, id);
  t.match(entries, [
    { action: AuditAction.EXPORT_STOPPED, actorId: owner.id, requestId: /^req_/, detail: {} },
    { action: AuditAction.EXPORT_CREATED, actorId: owner.id, requestId: /^req_/, detail: { kind: /S3|s3/ } },
  ]);
  t.equal(entries.length, 2);
  t.notMatch(JSON.stringify(entries), /owner\+secret|AKIA/);
});

t.test('a project has at most fifty exports in an environment', async (t) => {
  const owner = await newKey(app);
  const other = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
  for (let i = 0; i < 50; i += 10) await Promise.all(Array.from({ length: 10 }, () => make(owner)));
  const before = scene.probed().length;
  const refused = await Promise.all([1, 2].map(() => refusal(owner, { destination: destination() })));
  for (const one of refused) t.match(one, { status: 409, code: 'export.limit_reached', message: /50/ });
  t.equal(scene.probed().length, before, 'nothing is probed for an export that cannot be');
  await make(other);
  const { json } = await app.rest('/v1/exports?limit=1', { apiKey: owner.key });
  const [{ id } = { id: '' }] = json.data as Json[];
  await app.rest(`/v1/exports/${id}`, { apiKey: owner.key, method: 'DELETE' });
  t.ok(await make(owner), 'one that is stopped makes room');
});

t.test('lists are newest first and page without gap or repetition', async (t) => {
  const owner = await newKey(app);
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await make(owner)).id);
  await app.rest(`/v1/exports/${made[2]}`, { apiKey: owner.key, method: 'DELETE' });
  for (const { name, call } of surfaces) {
    const seen = await idsOfPages((cursor) => call(listExports, { limit: 2, cursor }, owner.key));
    t.same(seen, made, name);
  }
  const page = await app.rest('/v1/exports?limit=2', { apiKey: owner.key });
  const { key } = await newKey(app);
  const foreign = await app.rest(`/v1/exports?cursor=${page.json.next_cursor}`, { apiKey: key });
  t.match(foreign, { status: 400, json: { error: { code: 'cursor.invalid' } } });
});

t.test('no answer, log line or table has a secret', async (t) => {
  assertNoLeaks(t, app.recorder);
  t.ok(scene.answers.length > 100);
  t.notOk(scene.answers.some((text) => text.includes(SECRET) || text.includes('secret')));
  const lines = await dumpTables(app.pool);
  t.ok(lines.length > 20);
  t.same(findTraces(lines, [Buffer.from(SECRET)]), []);
});
