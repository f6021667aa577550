/** Earlier batches beside new ones, days, and logs of several epochs: in the end the manifests cover all without a gap. */
import t from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { ExportStart } from '../../../../gen/attestation/v1/exports_pb.js';
import { redactMetadata } from '../../../../src/server/attestations/submissions/metadata.js';
import { ship } from '../../../../src/server/exports/ship/ship.js';
import { readExportProgress } from '../../../../src/server/exports/store/export-status.js';
import { findActiveLog, listLogs } from '../../../../src/server/log/store/logs.js';
import { logManager } from '../../../../src/server/process/log-manager.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { linesOf, objectsOf } from '../../../support/exports/exports.js';
import {
  assertExported,
  type SceneExport,
  setExportScene,
  verifyStored,
} from '../../../support/exports/scene.js';
import { drain } from '../../../support/pipeline.js';
import { submitFor } from '../../../support/webhooks/webhooks.js';

const EARLIER = 120;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const scene = await setExportScene(t, { batchMaxLeaves: 1 });
const { test, store } = scene;
const { pool, pipeline } = test;

/** The pipeline without shipping. */
const idle = test.another({ exports: { ...pipeline.exports, stopping: AbortSignal.abort() } });

async function untilQuiet(...passing: number[]): Promise<void> {
  await drain(pipeline);
  for (const ms of passing) {
    await letPass(test, ms);
    await drain(pipeline);
  }
}

async function assertCovered(t: Parameters<typeof assertExported>[0], made: SceneExport) {
  const { problems, lines, uncovered, exports, ...rest } = await verifyStored(t, { pool, store }, made.id);
  t.same(problems, { list: [], total: 0, hasFailed: false });
  t.equal(uncovered.total, 0, 'a manifest lists each object');
  t.same([lines.not_verified, lines.could_not_check], [0, 0]);
  const [found] = exports;
  for (const log of found?.logs ?? []) t.same(log.gaps, [], `${log.origin} is covered`);
  return { ...rest, lines, found };
}

t.test('new batches are not delayed by earlier ones, and killed workers lose none', async (t) => {
  const projectId = await scene.newProject();
  await submitFor(test, projectId, EARLIER);
  await drain(idle);
  const made = await scene.exportOf(projectId, { start: ExportStart.BEGINNING });
  const none = await scene.exportOf(projectId);
  for (let round = 0; round < 4; round++) {
    const [id = ''] = await submitFor(test, projectId, 1);
    await drain(idle);
    let written = 0;
    let turns = 0;
    // The worker ends after some objects: what it had in hand is uploaded and not recorded.
    const killed = test.another({
      exports: {
        ...pipeline.exports,
        destinations: {
          ...pipeline.exports.destinations,
          use: async (row, run) => {
            const result = await pipeline.exports.destinations.use(row, run);
            if (++written > 12) throw Object.assign(new Error('killed'), { code: 'CONNECTION_CLOSED' });
            return result;
          },
        },
      },
    });
    while (written <= 12 && turns++ < 5) {
      await pool`UPDATE export SET due_at = clock_timestamp() WHERE id = ${made.id}`;
      await ship(killed, made.id, projectId).catch(() => {});
    }
    const there = (await linesOf(store, made.id)).map(({ submission }) => submission.id);
    t.ok(there.includes(id), 'the new one is there');
    const [progress] = await readExportProgress(pool, [made.id]);
    t.ok((progress?.lagBatches ?? 0) > 0, 'while earlier ones are missing');
    await letPass(test, 10_000);
  }
  await untilQuiet(2 * MINUTE_MS, DAY_MS, DAY_MS);
  for (const each of [made, none]) {
    await assertExported(t, { pool, store }, each);
    const { found, lines } = await assertCovered(t, each);
    t.equal(found?.isComplete, true);
    t.equal(lines.verified, each === made ? EARLIER + 4 : 4);
  }
});

t.test('days follow each other, and a redaction rewrites an earlier one', async (t) => {
  const projectId = await scene.newProject();
  const stranger = await scene.newProject();
  const both = [await scene.exportOf(projectId), await scene.exportOf(projectId, { schema: 'purl' })];
  const first: string[] = [];
  for (let day = 0; day < 4; day++) {
    const ids = await scene.submit(projectId, 3);
    if (day === 0) first.push(...ids);
    if (day === 2) await scene.submit(stranger, 2);
    await untilQuiet(2 * MINUTE_MS, DAY_MS);
  }
  await untilQuiet(DAY_MS);
  for (const made of both) {
    const { found, manifests } = await assertCovered(t, made);
    t.equal(found?.isComplete, true);
    t.equal(manifests, 4);
  }
  const before = await Promise.all(both.map(({ id }) => objectsOf(store, id)));
  await pool.begin((tx) => redactMetadata(tx, first[0] ?? ''));
  await untilQuiet(2 * MINUTE_MS, DAY_MS);
  for (const [i, made] of both.entries()) {
    await assertExported(t, { pool, store }, made);
    const after = await objectsOf(store, made.id);
    const rewritten = [...after].filter(([name, bytes]) => !before[i]?.get(name)?.equals(bytes));
    t.equal(rewritten.length, 2, 'the object and its manifest');
    t.equal((await assertCovered(t, made)).found?.isComplete, true);
  }
});

t.test('a later epoch of the log follows the first, which is frozen', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  await scene.submit(projectId, 2);
  const [live] = await pool<{ id: number }[]>`
    SELECT id FROM log WHERE environment = ${Environment.LIVE} ORDER BY epoch DESC LIMIT 1`;
  await pool`
    UPDATE log SET frozen_at = clock_timestamp(), frozen_reason = 'a test' WHERE id = ${live?.id ?? 0}`;
  await untilQuiet(2 * MINUTE_MS, DAY_MS, DAY_MS);
  await assertExported(t, { pool, store }, made);
  const { found } = await assertCovered(t, made);
  t.equal(found?.isComplete, true, 'what the frozen log has is complete');
  await logManager(pool, await openRegister(test.register)).newEpoch('live');
  const next = findActiveLog(await listLogs(pool), Environment.LIVE);
  t.not(next?.id, live?.id);
  await submitFor({ ...test, logId: next?.id ?? 0 }, projectId, 3);
  await untilQuiet(2 * MINUTE_MS, DAY_MS, DAY_MS);
  await assertExported(t, { pool, store }, made);
  const later = await assertCovered(t, made);
  t.equal(later.lines.verified, 5);
  t.equal(later.found?.isComplete, true);
  t.same(
    later.found?.logs.map(({ origin }) => origin),
    ['live.log.example.com', 'live-2.log.example.com'],
    'the manifests cover both',
  );
});
