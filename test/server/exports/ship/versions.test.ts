/** Workers of two versions that ship one export, as during an upgrade. */
import t from 'tap';
import { redactMetadata } from '../../../../src/server/attestations/submissions/metadata.js';
import type { Destinations } from '../../../../src/server/exports/destinations/destinations.js';
import type { Pipeline } from '../../../../src/server/pipeline/pipeline.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { objectsOf } from '../../../support/exports/exports.js';
import { BUCKET, openBucket } from '../../../support/exports/s3/fixture.js';
import { assertExported, setExportScene, verifyStored } from '../../../support/exports/scene.js';
import { drain } from '../../../support/pipeline.js';
import { submitFor } from '../../../support/webhooks/webhooks.js';

const scene = await setExportScene(t);
const { test, store } = scene;
const { pool, pipeline } = test;

t.test('workers of two versions, of which one sends before the SHA-256 is known, ship in turn', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  const { exports } = pipeline;
  const { destinations } = exports;
  const growing = await openBucket(t, store, {}, { multipartBytes: 10 });
  // The former version knows whole objects only, with their SHA-256 in the metadata.
  const former: Destinations['use'] = (row, run) =>
    destinations.use(row, ({ write, probe, close }) => run({ write, probe, close }));
  const present: Destinations['use'] = (_, run) => run(growing);
  const [one, other] = [former, present].map((use) =>
    test.another({ exports: { ...exports, destinations: { ...destinations, use } } }),
  ) as [Pipeline, Pipeline];
  const hasSha256 = async () => {
    const names = [...(await objectsOf(store, made.id)).keys()].filter((name) => name.endsWith('.jsonl'));
    const [name = ''] = names.sort().slice(-1);
    return 'sha256' in (store.buckets.get(BUCKET)?.objects.get(name)?.metadata ?? {});
  };
  const seen = new Set<string>();
  for (const [first, second] of [
    [one, other],
    [other, one],
    [one, one],
    [other, other],
  ] as const) {
    const [id = ''] = await submitFor(test, projectId, 3);
    await drain(first);
    const before = await hasSha256();
    t.equal(before, first === one);
    // It ends before it records what it has written.
    await pool`
      UPDATE export_shipment SET shipped_revision = 0, priority = 2
      WHERE export_id = ${made.id} AND tree_size = (SELECT max(tree_size) FROM export_shipment WHERE export_id = ${made.id})`;
    await pool`UPDATE export SET due_at = clock_timestamp() WHERE id = ${made.id}`;
    await drain(second);
    await assertExported(t, { pool, store }, made);
    seen.add(`${before} ${await hasSha256()}`);
    await pool.begin((tx) => redactMetadata(tx, id));
    await drain(first);
    await assertExported(t, { pool, store }, made);
  }
  t.same([...seen].sort(), ['false false', 'false true', 'true true']);
  await letPass(test, 120_000);
  await drain(one);
  await submitFor(test, projectId, 1);
  await drain(other);
  await letPass(test, 120_000);
  await drain(other);
  const { problems, lines, uncovered } = await verifyStored(t, { pool, store }, made.id);
  t.match(
    { problems, uncovered, lines },
    { problems: { total: 0 }, uncovered: { total: 0 }, lines: { verified: 13 } },
  );
});
