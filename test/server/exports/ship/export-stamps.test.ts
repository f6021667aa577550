/** Lines of exports carry the time stamps over signatures: at once those that a second suffices for, the others later. */
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import type { Pool } from '../../../../src/server/database/connect.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { type Line, linesOf } from '../../../support/exports/exports.js';
import {
  assertExported,
  type SceneExport,
  setExportScene,
  verifyStored,
} from '../../../support/exports/scene.js';
import { drain, makeWitness, type TestPipeline, unwilling, willing } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { type StampAuthority, startStampAuthority } from '../../../support/witnesses/stamp-authority.js';

type Limits = Parameters<StampAuthority['witness']>[1];

async function setScene(t: Test, limits?: Limits) {
  const authority = await startStampAuthority(t);
  const witnesses = [await makeWitness(t, 'w'), await makeWitness(t, 'late', { required: false })];
  const scene = await setExportScene(t, { witnesses, stampWitnesses: [authority.witness('stamps', limits)] });
  await authority.trustIn(scene.test.pool, 'stamps');
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  const read = async () => (await linesOf(scene.store, made.id)).map(stampsOf);
  const { pool } = scene.test;
  return { ...scene, pool, authority, projectId, made, read };
}

function sigstoreOf({ bundle }: Line): { verificationMaterial: JsonObject } {
  return bundle.sigstore_bundle as { verificationMaterial: JsonObject };
}

function stampsOf(line: Line): { stamps: number; isPending: boolean } {
  const { bundle } = line;
  const { verificationMaterial } = sigstoreOf(line);
  const { rfc3161Timestamps = [] } = (verificationMaterial.timestampVerificationData ?? {}) as {
    rfc3161Timestamps?: unknown[];
  };
  return { stamps: rfc3161Timestamps.length, isPending: bundle.stamp_pending === true };
}

/** Limits that no authority of a test reaches. */
const FAST = { inFlight: 64, perSecond: 100_000 };
const STAMPED = { stamps: 1, isPending: false };
const PENDING = { stamps: 0, isPending: true };

t.test('every line is stamped, once, and an export verifies', async (t) => {
  const { test, pool, store, submit, authority, projectId, made, read, witnesses } = await setScene(t);
  const [, late] = witnesses;
  if (late === undefined) throw new Error('there is no second witness');
  late.manner = unwilling;
  await submit(projectId, 5);
  t.same(await read(), Array(5).fill(STAMPED));
  const before = await linesOf(store, made.id);
  late.manner = willing;
  await letPass(test, 60_000);
  await drain(test.pipeline);
  const after = await linesOf(store, made.id);
  const witnessesIn = (lines: Line[]) => lines.map(({ bundle }) => (bundle.witnesses as unknown[]).length);
  t.same(witnessesIn(before), Array(5).fill(2));
  t.same(witnessesIn(after), Array(5).fill(3));
  t.same(after.map(sigstoreOf), before.map(sigstoreOf));
  t.equal(authority.asked, 5, 'the object of a later revision has the stored stamps');
  await assertExported(t, { pool, store }, made);
  t.match(await verifyStored(t, { pool, store }, made.id), { problems: [] });
});

t.test('an object waits a second for a silent authority, and the next does not wait', async (t) => {
  const { pool, store, submit, authority, projectId, made, read } = await setScene(t);
  await submit(projectId, 2);
  authority.delayMs = 100_000;
  let startMs = performance.now();
  await submit(projectId, 20);
  t.ok(performance.now() - startMs >= 1_000, 'it waits');
  startMs = performance.now();
  for (let i = 0; i < 3; i++) await submit(projectId, 2);
  const tookMs = performance.now() - startMs;
  t.ok(tookMs < 3_000, `three objects take ${tookMs} ms, none waits a second`);
  t.same((await read()).slice(0, 2), [STAMPED, STAMPED]);
  t.same((await read()).slice(2), Array(26).fill(PENDING));
  await assertExported(t, { pool, store }, made);
});

t.test('a dead authority takes an object no time', async (t) => {
  const { pool, store, submit, authority, projectId, made, read } = await setScene(t);
  authority.answer = async () => Promise.reject(new Error('dead'));
  await submit(projectId, 50);
  t.same(await read(), Array(50).fill(PENDING));
  t.ok(authority.asked <= 8, `${authority.asked} requests`);
  await assertExported(t, { pool, store }, made);
});

t.test(
  'an object has at most a thousand new stamps, and is written once more when all lines have theirs',
  async (t) => {
    const { test, pool, store, submit, authority, projectId, made, read } = await setScene(t, FAST);
    const many = 1_100;
    authority.answer = async (query) =>
      authority.asked > 1_050 ? Promise.reject() : authority.honest(query);
    await submit(projectId, many);
    const found = await read();
    const stamped = found.filter(({ stamps }) => stamps === 1).length;
    t.ok(stamped > 0 && stamped <= 1_000, `${stamped} lines are stamped`);
    t.equal(found.filter(({ isPending }) => isPending).length, many - stamped);
    t.same(await revisionsOf(pool, made), [1]);
    authority.answer = authority.honest;
    await untilStamped(test, made);
    t.same(await read(), Array(many).fill(STAMPED));
    t.same(await revisionsOf(pool, made), [2], 'one more revision');
    t.ok(authority.asked < many + 20, `${authority.asked} requests`);
    await assertExported(t, { pool, store }, made);
    t.match(await verifyStored(t, { pool, store }, made.id), { problems: [] });
  },
);

t.test('lines that were shipped while the authority was dead get their stamps when it is back', async (t) => {
  const { test, pool, submit, authority, projectId, made, read } = await setScene(t, FAST);
  authority.answer = async () => Promise.reject(new Error('dead'));
  for (let i = 0; i < 3; i++) await submit(projectId, 10);
  t.same(await read(), Array(30).fill(PENDING));
  t.same(await revisionsOf(pool, made), [1, 1, 1]);
  await letPass(test, 31_000);
  await drain(test.pipeline);
  t.same(await revisionsOf(pool, made), [1, 1, 1], 'nothing is written without a new stamp');
  authority.answer = authority.honest;
  await untilStamped(test, made);
  t.same(await read(), Array(30).fill(STAMPED));
  t.same(await revisionsOf(pool, made), [2, 2, 2]);
});

async function revisionsOf(pool: Pool, { id }: SceneExport): Promise<number[]> {
  const rows = await pool<{ revision: number }[]>`
    SELECT shipped_revision AS revision FROM export_shipment WHERE export_id = ${id} ORDER BY tree_size`;
  return rows.map(({ revision }) => revision);
}

/** Lets time pass until every shipped line of an export has its stamps, and the object is written. */
async function untilStamped(test: TestPipeline, { id }: SceneExport): Promise<void> {
  await until('every line is stamped', async () => {
    await letPass(test, 31_000);
    await drain(test.pipeline);
    const left = await test.pool`
      SELECT FROM export_shipment
      WHERE export_id = ${id} AND (unstamped_from IS NOT NULL OR wanted_revision > shipped_revision)`;
    return left.length === 0;
  });
}
