/** Exports: created, read, listed, tested, deleted, limited in number and recorded in the audit log. */
import t from 'tap';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { ExportCompression, ExportService, ExportStart } from '../../../../gen/attestation/v1/exports_pb.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { BUCKET, OWNER } from '../../../support/exports/s3/fixture.js';
import { auditOf } from '../../rpc/auditing.js';
import { idsOfPages } from '../../rpc/paging.js';
import { assertSecretKept, destinationOf } from './export-secrets.js';
import { type Json, setExportScene } from './exporting.js';

const scene = await setExportScene(t);
const { app, store, make, refusal, destination } = scene;
const surfaces = app.surfaces();
const { createExport, getExport, listExports, testExport, deleteExport } = ExportService.method;

t.test('an export is created, read, listed, tested and deleted on every protocol', async (t) => {
  for (const { name, call } of surfaces) {
    const owner = await newKey(app);
    const input = {
      destination: destinationOf(scene),
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
  await assertSecretKept(t, scene, 100);
});
