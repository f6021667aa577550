/**
 * Two writable databases and one register of each kind, as after a failover that fenced nothing: one history is published.
 * TEST_S3_URL names another store than that of the tests, with their bucket and keys.
 */
import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { noteKey } from '../../../../src/proof/log/note.js';
import { sequenceSubmissions } from '../../../../src/server/attestations/sequence/sequence-submissions.js';
import { syncDirectory } from '../../../../src/server/core/files/write-file-atomic.js';
import { connectPool, type Pool } from '../../../../src/server/database/connect.js';
import { sealJob } from '../../../../src/server/jobs/job.js';
import { openFileRegister } from '../../../../src/server/log/register/file-register.js';
import type { Register } from '../../../../src/server/log/register/register.js';
import { getLog } from '../../../../src/server/log/store/logs.js';
import type { Pipeline } from '../../../../src/server/pipeline/pipeline.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { bucketAt, startStore } from '../../../support/exports/s3/fixture.js';
import { drain, makePipeline, makeWitness, type TestPipeline } from '../../../support/pipeline.js';
import { copyDatabase, testDatabase } from '../../../support/servers/shared-servers.js';
import { until } from '../../../support/until.js';
import { startC2spWitness } from '../../../support/witnesses/c2sp-witness.js';

const ORIGIN = 'live.log.example.com';

type Side = { pool: Pool; pipeline: Pipeline };
type Scene = TestPipeline & { a: Side; b: Side };

const KINDS = ['folder', 'bucket', 'witness'] as const;
type Kind = (typeof KINDS)[number];

/** A pipeline over a database of its own and a register of that kind. */
async function openPipeline(t: Test, kind: Kind): Promise<TestPipeline> {
  const databaseUrl = await testDatabase(t);
  const test = await makePipeline(t, { databaseUrl, witnesses: [await makeWitness(t, 'one')] });
  if (kind === 'folder') return test;
  if (kind === 'bucket') {
    const url = process.env.TEST_S3_URL ?? (await startStore(t)).url;
    return withRegister(test, await openRegister({ storage: bucketAt(url, randomUUID()) }));
  }
  const { publicKey } = await getLog(test.pool, test.logId);
  const known = { origin: ORIGIN, keys: [noteKey(ORIGIN, publicKey)] };
  return withRegister(test, await openRegister(await startC2spWitness(t, [known])));
}

function withRegister(test: TestPipeline, register: Register): TestPipeline {
  const another: TestPipeline['another'] = (change) => test.another({ register, ...change });
  return { ...test, pipeline: another(), another };
}

/** A log of two leaves, published, and then two databases with different leaves behind those. */
async function open(t: Test, kind: Kind): Promise<Scene> {
  const test = await openPipeline(t, kind);
  await test.submit(2);
  await drain(test.pipeline);
  const url = await copyDatabase(t, test.databaseUrl);
  const pool = connectPool({ url, name: 'copy', max: 4, statementTimeoutMs: 10_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await until('the first database is back', async () => (await test.pool`SELECT 1`).length === 1);
  const a = { pool: test.pool, pipeline: test.pipeline };
  const b = { pool, pipeline: test.another({ pool }) };
  await store(test, a, 3);
  await store(test, b, 1);
  return { ...test, a, b };
}

const store = ({ logId, makeRows }: TestPipeline, { pool }: Side, count: number) =>
  sequenceSubmissions(pool, logId, makeRows(count), false, 86_400_000);
const seal = ({ logId }: TestPipeline, { pipeline }: Side) => runJob(pipeline, sealJob(logId));

/** `<size> <root>` of the register's entry. */
async function registered({ pipeline }: TestPipeline): Promise<string> {
  const entry = await pipeline.register.read(ORIGIN);
  return `${entry?.size} ${Buffer.from(entry?.rootHash ?? []).toString('hex')}`;
}

async function published({ pool }: Side): Promise<string[]> {
  const rows = await pool<{ entry: string }[]>`
    SELECT tree_size || ' ' || encode(root_hash, 'hex') AS entry FROM batch
    WHERE registered_at IS NOT NULL ORDER BY tree_size`;
  return rows.map(({ entry }) => entry);
}

/** One side published all it has, the other nothing new, which is frozen. */
async function oneWentOn(t: Test, scene: Scene, went: Side, stayed: Side): Promise<void> {
  t.equal((await published(went)).at(-1), await registered(scene), 'the register has what one published');
  t.equal((await published(stayed)).length, 1, 'the other published nothing more');
  const { pipeline } = stayed;
  await seal(scene, stayed);
  t.match((await getLog(pipeline.pool, scene.logId)).frozenReason, /^the register has /);
  t.equal((await getLog(went.pool, scene.logId)).frozenAt, null);
  await store(scene, went, 2);
  await seal(scene, went);
  t.equal((await published(went)).at(-1), await registered(scene));
}

type Between = () => Promise<unknown>;

/** A register of which one writer is held up: what `between` does happens in the middle of its step. */
const heldUp: Record<string, (register: Register, folder: string, between: Between) => Register> = {
  'before its entry is replaced': (register, _, between) => ({
    ...register,
    replace: async (...entries) => {
      await between();
      return register.replace(...entries);
    },
  }),
  'while its entry is made durable': (_, folder, between) =>
    openFileRegister(folder, async (path) => {
      await between();
      await syncDirectory(path);
    }),
  'after its entry was replaced': (register, _, between) => ({
    ...register,
    replace: async (...entries) => {
      const isDone = await register.replace(...entries);
      await between();
      return isDone;
    },
  }),
};

for (const [kind, when] of KINDS.flatMap((kind) =>
  Object.keys(heldUp).map((when) => [kind, when] as const),
)) {
  if (kind !== 'folder' && when === 'while its entry is made durable') continue;
  t.test(`${kind}: with one held up ${when}, one history is published`, async (t) => {
    const scene = await open(t, kind);
    const { a, b } = scene;
    let once = false;
    const between = async () => {
      if (once) return;
      once = true;
      await seal(scene, b);
    };
    const register = heldUp[when]!(scene.pipeline.register, scene.register, between);
    await seal(scene, { ...a, pipeline: scene.another({ register }) });
    const isFirst = when !== 'before its entry is replaced';
    await (isFirst ? oneWentOn(t, scene, a, b) : oneWentOn(t, scene, b, a));
  });
}

for (const kind of KINDS) {
  t.test(`${kind}: killed after its entry was replaced, the next run publishes`, async (t) => {
    const scene = await open(t, kind);
    const { a } = scene;
    const register = heldUp['after its entry was replaced']!(scene.pipeline.register, '', async () => {
      throw new Error('killed');
    });
    const killed = seal(scene, { ...a, pipeline: scene.another({ register }) });
    await t.rejects(killed, /killed/);
    t.equal((await published(a)).length, 1);
    t.match(await registered(scene), /^5 /);
    await seal(scene, a);
    t.equal((await published(a)).at(-1), await registered(scene));
    t.equal((await getLog(a.pool, scene.logId)).frozenAt, null);
  });

  t.test(`${kind}: both at once, again and again: one history is published`, async (t) => {
    const scene = await open(t, kind);
    const { a, b } = scene;
    for (let round = 0; round < 5; round++) {
      await Promise.allSettled([seal(scene, a), seal(scene, b), seal(scene, a), seal(scene, b)]);
    }
    const counts = [(await published(a)).length, (await published(b)).length];
    t.same(counts.sort(), [1, 2]);
  });

  t.test(`${kind}: workers of one database publish at once and agree`, async (t) => {
    const { a, ...scene } = await open(t, kind);
    for (let round = 0; round < 10; round++) {
      await store(scene, a, 3);
      await Promise.all([1, 2, 3].map(() => seal(scene, a)));
    }
    await drain(a.pipeline);
    t.equal((await published(a)).at(-1), await registered(scene));
    t.equal((await getLog(a.pool, scene.logId)).frozenAt, null);
  });

  t.test(
    `${kind}: another service with the same register and origin gets an error, and freezes no log`,
    async (t) => {
      const ours = await open(t, kind);
      const stranger = await makePipeline(t, { databaseUrl: await testDatabase(t), witnesses: [] });
      const pipeline = stranger.another({ register: ours.pipeline.register });
      const before = await registered(ours);
      for (let round = 0; round < 2; round++) {
        await stranger.submit(9);
        t.match(await runJob(pipeline, sealJob(stranger.logId)), { type: 'retry' });
      }
      t.equal((await getLog(stranger.pool, stranger.logId)).frozenAt, null);
      const said = stranger.lines.filter(
        ({ msg }) => msg === 'nothing is sealed without the checkpoint register',
      );
      t.match(
        said[0]?.reason,
        /has the log live\.log\.example\.com of another installation, with another log key \(.*CHECKPOINT_REGISTER/,
      );
      t.equal(await registered(ours), before);
      await seal(ours, ours.a);
      t.equal((await published(ours.a)).at(-1), await registered(ours), 'the first goes on');
    },
  );
}
