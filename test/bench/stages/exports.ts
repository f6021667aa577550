import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { deriveKeyRing } from '../../../src/server/keys/key-ring.js';
import { makeExport } from '../../support/exports/exports.js';
import { BUCKET, OWNER } from '../../support/exports/s3/fixture.js';
import { waitUntilWitnessed } from '../fill.js';
import type { Options } from '../options.js';
import { appendSubmissions, openLiveLog } from '../prefill.js';
import { benchScript, runNode, startNode } from '../process.js';
import { measureInTurns, type Sample, type Summary } from '../rounds.js';
import { openPool, type Services, startRole } from '../services.js';
import type { ExportResult, ExportTask } from './export-process.js';
import { runSeal } from './seal.js';

/** Rates are rows a second, `cpuMicros` of the sending process for each; `bytes` of the object. */
export type ExportsMeasurement = {
  rows: number;
  bytes: number;
  summaries: Summary[];
  /** The most memory above idle while the batch was shipped. */
  grownMib: number;
};

/** The default of BATCH_MAX_LEAVES. */
const LARGE_BATCH = 65_536;

/** Shipping one large batch by one process to a store on disk, beside writing the same bytes with the bare SDK. */
export async function measureExports(services: Services, options: Options): Promise<ExportsMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const { databaseUrl, dir, projectId } = services;
    const pool = openPool(databaseUrl, hooks);
    await sealLargeBatch(services, pool);
    const store = await startNode([benchScript('stages/export-store')]);
    hooks.add(store.stop);
    const keys = deriveKeyRing((await openSecrets(dir)).secretKeys, 'encryption');
    let grownMib = 0;
    const shipBatch = async () => {
      const exportId = await makeExport(pool, { url: store.ready }, { projectId, keys });
      // It starts before the last batch, as if that had settled since.
      await pool`
        UPDATE export_cursor k SET start_size = b.first_index, through_size = b.first_index, backfill_size = b.first_index
        FROM (SELECT * FROM batch ORDER BY log_id, tree_size DESC LIMIT 1) b
        WHERE k.export_id = ${exportId} AND k.log_id = b.log_id`;
      const result = await runTask({ kind: 'ship', databaseUrl, dir, exportId, projectId });
      grownMib = Math.max(grownMib, (result.peakMib ?? 0) - result.idleMib);
      return { exportId, result };
    };
    const { exportId } = await shipBatch();
    const file = join(dir, 'export.jsonl');
    const bytes = await download(pool, store.ready, exportId, file);
    const upload = { url: store.ready, file, name: 'bare.jsonl' };
    const bare = (kind: 'put' | 'parts') => async () => sampleOf(await runTask({ kind, ...upload }));
    const summaries = await measureInTurns(
      [
        { name: 'the bare SDK, same parts and SHA-256', run: bare('parts') },
        { name: 'the bare SDK, one request and CRC-32', run: bare('put') },
        { name: 'an export', run: async () => sampleOf((await shipBatch()).result) },
      ],
      { ...options, warmUpSeconds: 0 },
    );
    return { rows: LARGE_BATCH, bytes, summaries, grownMib };
  });
}

async function sealLargeBatch(services: Services, pool: Pool): Promise<void> {
  const { dir, projectId, databaseUrl, env } = services;
  await appendSubmissions({ pool, dir, projectId }, LARGE_BATCH);
  const registerDir = env.CHECKPOINT_REGISTER ?? '';
  await runSeal({ databaseUrl, dir, registerDir, batchMaxLeaves: LARGE_BATCH });
  const worker = await startRole(services, 'worker');
  const { logId } = await openLiveLog({ pool, dir });
  await waitUntilWitnessed(pool, logId).finally(worker.stop);
}

/** Saves the object that was shipped. @returns its length */
async function download(pool: Pool, url: string, exportId: string, file: string): Promise<number> {
  const [row] = await pool<{ bytes: number; submissions: number; key: string }[]>`
    SELECT bytes, submissions, 'copies/' || export_id || '/live/' || to_char(day, 'YYYY/MM/DD') || '/' || batch_id || '.jsonl'
      AS key FROM export_shipment WHERE export_id = ${exportId} AND shipped_revision > 0`;
  if (row?.submissions !== LARGE_BATCH) throw new Error(`${row?.submissions} submissions were shipped`);
  const { accessKeyId, secretAccessKey } = OWNER;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials });
  const { Body } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: row.key }));
  if (!(Body instanceof Readable)) throw new Error('the store returned no body');
  await pipeline(Body, createWriteStream(file));
  return row.bytes;
}

function runTask(task: ExportTask): Promise<ExportResult> {
  return runNode<ExportResult>([benchScript('stages/export-process'), JSON.stringify(task)]);
}

function sampleOf({ seconds, cpuSeconds }: ExportResult): Sample {
  return { perSecond: LARGE_BATCH / seconds, cpuMicros: (cpuSeconds / LARGE_BATCH) * 1e6 };
}
