/** No space is left: callers are told to come back, nothing acknowledged is lost, and with space all goes on. */

import t, { type Test } from 'tap';
import type { Pool } from '../../../src/server/database/connect.js';
import { limitFileSize, MAY_MOUNT, mountSmallDisk } from '../../support/breaking/small-disk.js';
import { startLoad } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { type Scene, setScene } from '../../support/fault-fixture.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

const CLIENTS = 6;
const DISK_MEGABYTES = 200;
/** Postgres does not survive being unable to begin one. */
const WAL_SEGMENT_BYTES = 16 * 1024 * 1024;

/** The doctor's line; the second if the file is gone that each new connection reads (`pg_internal.init`), as after a VACUUM. */
const NO_SPACE = /^failed +(?:space +.*: make room on its disk|postgres +.*: No space left on device)$/m;

/** Space that runs out and comes back. */
type Space = { scene: Scene; runOut(): Promise<void>; comeBack(): Promise<void> };

async function smallDisk(t: Test): Promise<Space> {
  const disk = await mountSmallDisk(t, DISK_MEGABYTES);
  const scene = await setScene(t, { dirs: { postgres: disk.path } });
  const runOut = async () => {
    await beginWalSegment(scene.pool);
    disk.fill();
  };
  return { scene, runOut, comeBack: async () => disk.free() };
}

/** Ends the one that is written. */
async function beginWalSegment(pool: Pool): Promise<void> {
  await pool`
    SELECT pg_logical_emit_message(
      true, 'rest', repeat('x', (${WAL_SEGMENT_BYTES} - (pg_current_wal_lsn() - '0/0') % ${WAL_SEGMENT_BYTES})::integer))`;
}

/** The file of the log's partition is grown past the limit first, by rows below the log's, so that no more of it can be written. */
async function boundedFiles(t: Test): Promise<Space> {
  const scene = await setScene(t);
  const { pool, servers } = scene;
  await pool.unsafe(`
    CREATE TABLE submission_1_0 (LIKE submission INCLUDING ALL) WITH (autovacuum_enabled = false);
    ALTER TABLE submission ATTACH PARTITION submission_1_0 FOR VALUES FROM (1, -10000) TO (1, 1000000)`);
  await pool`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata_state,
                            commitment, dsse_key_id, signature, leaf_hash)
    SELECT 1, -n, 'sub_' || n, '', now(), convert_to(repeat('x', 1880), 'UTF8'), '', 1, '', 1, '', ''
    FROM generate_series(1, 10000) n`;
  return {
    scene,
    runOut: async () => limitFileSize(servers.postgres.pid(), WAL_SEGMENT_BYTES),
    comeBack: async () => {
      limitFileSize(servers.postgres.pid(), undefined);
      await pool`DELETE FROM submission WHERE log_index < 0`;
    },
  };
}

const WAYS = { 'the disk is full': smallDisk, 'files may not grow': boundedFiles };

for (const [what, open] of Object.entries(WAYS).filter(([, way]) => MAY_MOUNT || way !== smallDisk)) {
  t.test(`when ${what} under Postgres`, async (t) => {
    const { scene, runOut, comeBack } = await open(t);
    const { installation, pool, apiKey } = scene;
    const api = await installation.startApi();
    const worker = await installation.startWorker();
    const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: CLIENTS, most: 1e9 });
    const get = (id: string | undefined) =>
      fetch(`${api.baseUrl}/v1/attestations/${id}`, { headers: { authorization: `Bearer ${apiKey}` } });
    await load.more(50);
    const first = load.acknowledged[0]?.id;
    await until('the first is witnessed', async () =>
      (await (await get(first)).text()).includes('"witnessed"'),
    );

    await runOut();
    const refusals = () => load.statuses.get(503) ?? 0;
    await until('creations are refused', () => refusals() >= CLIENTS);
    await until('what is there can be read', async () => {
      const answer = await get(first);
      t.ok(answer.status === 200 || answer.status === 503, `read: ${answer.status}`);
      return answer.status === 200;
    });

    const doctor = await runHere(['doctor'], { env: installation.env });
    if (open === smallDisk) t.match(doctor.stdout, NO_SPACE);

    await comeBack();
    await load.more(50);
    await load.stop();
    t.same([...load.statuses.keys()].sort(), [201, 503]);
    t.equal((await get(first)).status, 200);
    await letLeasesRunOut(pool);
    await untilWitnessed(pool);
    await scene.assertConsistent(t, load.acknowledged);
    await worker.stop();
    await api.stop();
  });
}

t.test("when the disk is full under JetStream's store, nothing waits for it", async (t) => {
  const limit = await (MAY_MOUNT ? mountSmallDisk(t, 16) : undefined);
  const scene = await setScene(t, limit === undefined ? {} : { dirs: { nats: limit.path } });
  const { installation, pool, servers, apiKey } = scene;
  const { nats } = servers;
  const api = await installation.startApi();
  const worker = await installation.startWorker();
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: CLIENTS, most: 300 });
  const isWitnessed = async (id: string | undefined) => {
    const [row] = await pool<{ witnessed: boolean }[]>`
      SELECT b.status = 2 AS witnessed FROM submission s
      JOIN batch b ON b.log_id = s.log_id AND b.first_index <= s.log_index AND b.tree_size > s.log_index
      WHERE s.id = ${id ?? ''}`;
    return row?.witnessed === true;
  };
  await load.more(50);
  await until('the stream is in use', () => isWitnessed(load.acknowledged[0]?.id));

  if (limit === undefined) limitFileSize(nats.pid(), 1);
  else limit.fill();
  await load.more(100);
  await until('what was submitted without space is witnessed', () =>
    isWitnessed(load.acknowledged.at(-1)?.id),
  );

  if (limit === undefined) limitFileSize(nats.pid(), undefined);
  else limit.free();
  await load.more(50);
  await nats.kill();
  await nats.start();
  await load.more(50);
  await load.stop();
  t.same([...load.statuses.keys()], [201]);
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  await scene.assertConsistent(t, load.acknowledged);
  await worker.stop();
  await api.stop();
});
