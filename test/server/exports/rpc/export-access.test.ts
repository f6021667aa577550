/** Who may see and change an export, and whose submissions it ships. */
import t from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { ExportService } from '../../../../gen/attestation/v1/exports_pb.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { linesOf, objectsOf } from '../../../support/exports/exports.js';
import { NOTHING } from '../../rpc/samples.js';
import { submit } from '../../rpc/submitting.js';
import { assertSecretKept, destinationOf } from './export-secrets.js';
import { setExportScene } from './exporting.js';

const scene = await setExportScene(t);
const { app, store, make } = scene;
const surfaces = app.surfaces();
const { createExport, getExport, listExports, testExport, deleteExport } = ExportService.method;

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
            method === createExport
              ? { destination: destinationOf(scene) }
              : method === listExports
                ? {}
                : { id };
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

t.test('no answer, log line or table has a secret', async (t) => {
  await assertSecretKept(t, scene, 50);
});
