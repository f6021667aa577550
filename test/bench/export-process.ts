// A process that ships what an export has due, or writes the bytes of a file with the bare SDK, and prints what it took.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { createLogger } from '../../src/server/core/logger.js';
import { openSecrets } from '../../src/server/embedded/secrets.js';
import { ship } from '../../src/server/pipeline/exports/ship.js';
import { openExports } from '../../src/server/process/export-shipping.js';
import { BUCKET, OWNER } from '../support/exports/s3/fixture.js';
import { peakMib } from './process.js';

/** What the process did and used. `idleMib`: before it began, with its code loaded and its connections open. */
export type ExportResult = {
  seconds: number;
  cpuSeconds: number;
  idleMib: number;
  peakMib: number | undefined;
};

export type ExportTask =
  | { kind: 'bare'; url: string; file: string; name: string }
  | { kind: 'ship'; databaseUrl: string; dir: string; exportId: string; projectId: string };

const MIB = 1024 * 1024;
// As a starting process does.
setFlagsFromString('--heap-growing-percent=40');
const task = JSON.parse(process.argv[2] ?? '') as ExportTask;
const run = task.kind === 'bare' ? await prepareUpload(task) : await prepareShipping(task);
const idleMib = process.memoryUsage.rss() / MIB;
const before = process.cpuUsage();
const startedMs = performance.now();
await run();
const { user, system } = process.cpuUsage(before);
const result: ExportResult = {
  seconds: (performance.now() - startedMs) / 1000,
  cpuSeconds: (user + system) / 1e6,
  idleMib,
  peakMib: peakMib(process.pid),
};
console.log(JSON.stringify(result));
process.exit(0);

async function prepareUpload({ url, file, name }: Extract<ExportTask, { kind: 'bare' }>) {
  const { accessKeyId, secretAccessKey } = OWNER;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials });
  const { size } = await stat(file);
  return async () => {
    const body = { Body: createReadStream(file), ContentLength: size };
    await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: name, ...body }));
  };
}

async function prepareShipping(wanted: Extract<ExportTask, { kind: 'ship' }>) {
  const { databaseUrl, dir, exportId, projectId } = wanted;
  const secrets = await openSecrets(dir);
  const { exports } = await openExports({
    config: {
      databaseUrl,
      secrets,
      allowInsecureDestinations: true,
      ambientCredentials: [],
      extraCaFile: undefined,
      exportSpoolBytes: 1024 * 1024 * 1024,
    },
    log: createLogger({ level: 'warn', fd: 2 }),
    observeShipments: () => {},
  });
  const pipeline = { exports, send: () => {} };
  return async () => {
    for (let outcome = await ship(pipeline, exportId, projectId); outcome.type === 'retry'; ) {
      await delay(outcome.delayMs);
      outcome = await ship(pipeline, exportId, projectId);
    }
  };
}
