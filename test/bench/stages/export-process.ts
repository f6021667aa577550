// A process that ships what an export has due, or writes the bytes of a file with the bare SDK, and prints what it took.
import { hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import {
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { createLogger } from '../../../src/server/core/logger.js';
import { createShutdownHooks } from '../../../src/server/core/shutdown.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { ship } from '../../../src/server/exports/ship/ship.js';
import { openStandby } from '../../../src/server/process/standby.js';
import { openExports } from '../../../src/server/process/worker/export-shipping.js';
import { BUCKET, OWNER } from '../../support/exports/s3/fixture.js';
import { peakMib } from '../process.js';

/** What the process did and used. `idleMib`: before it began, with its code loaded and its connections open. */
export type ExportResult = {
  seconds: number;
  cpuSeconds: number;
  idleMib: number;
  peakMib: number | undefined;
};

export type ExportTask =
  | ({ kind: 'put' | 'parts' } & Upload)
  | { kind: 'ship'; databaseUrl: string; dir: string; exportId: string; projectId: string };

/** A file to upload with the bare SDK. */
type Upload = { url: string; file: string; name: string };

const MIB = 1024 * 1024;
/** As an export does it. */
const PART_BYTES = 8 * MIB;
const PARTS_IN_FLIGHT = 2;
// As a starting process does.
setFlagsFromString('--no-parallel-scavenge');
setFlagsFromString('--heap-growing-percent=40');
const task = JSON.parse(process.argv[2] ?? '') as ExportTask;
const run = await prepare(task);
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

async function prepare(wanted: ExportTask): Promise<() => Promise<void>> {
  if (wanted.kind === 'ship') return prepareShipping(wanted);
  const { accessKeyId, secretAccessKey } = OWNER;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({
    endpoint: wanted.url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
  });
  return () => (wanted.kind === 'put' ? putFile : uploadParts)(client, wanted);
}

/** One request, with the CRC-32 that the SDK computes by default. */
async function putFile(client: S3Client, { file, name }: Upload): Promise<void> {
  const { size } = await stat(file);
  const body = { Body: createReadStream(file), ContentLength: size };
  await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: name, ...body }));
}

/**
 * Parts as those of an export: of the same size, as many at a time, each with its SHA-256. The SDK hashes each once more
 * to sign it, where an export hashes the whole.
 */
async function uploadParts(client: S3Client, { file, name }: Upload): Promise<void> {
  const target = { Bucket: BUCKET, Key: name };
  const { UploadId } = await client.send(
    new CreateMultipartUploadCommand({ ...target, ChecksumAlgorithm: 'SHA256' }),
  );
  const handle = await open(file);
  const { size } = await handle.stat();
  const sent: CompletedPart[] = [];
  let next = 0;
  const work = async () => {
    const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
    for (let part = next++; part * PART_BYTES < size; part = next++) {
      const { bytesRead } = await handle.read(buffer, 0, PART_BYTES, part * PART_BYTES);
      const Body = buffer.subarray(0, bytesRead);
      const checked = { PartNumber: part + 1, ChecksumSHA256: hash('sha256', Body, 'base64') };
      const { ETag } = await client.send(new UploadPartCommand({ ...target, UploadId, ...checked, Body }));
      sent[part] = { ...checked, ETag };
    }
  };
  await Promise.all(Array.from({ length: PARTS_IN_FLIGHT }, work));
  const completed = { UploadId, MultipartUpload: { Parts: sent } };
  await client.send(new CompleteMultipartUploadCommand({ ...target, ...completed }));
  await handle.close();
}

async function prepareShipping(wanted: Extract<ExportTask, { kind: 'ship' }>) {
  const { databaseUrl, dir, exportId, projectId } = wanted;
  const secrets = await openSecrets(dir);
  const log = createLogger({ level: 'warn', fd: 2 });
  const { exports } = await openExports({
    ...openStandby({ databaseUrl, log }, createShutdownHooks()),
    config: {
      databaseUrl,
      secrets,
      allowInsecureDestinations: true,
      ambientCredentials: [],
      extraCaFile: undefined,
      programPath: process.env.PATH,
      exportSpoolBytes: 1024 * 1024 * 1024,
    },
    log,
    stampWitnesses: [],
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
