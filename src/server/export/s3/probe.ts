/** Checks that a bucket can be written and read, and that it honours the conditions that writes depend on. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { DestinationError, type ExportObject } from '../destination.js';
import { type Bucket, call } from './bucket.js';
import { conditionOf, readStored, type Stored, storeObject } from './write.js';

const CONTENT = Buffer.from('{"probe":"attestation export"}\n');
/** How often a probe is repeated because another one was faster. */
const MAX_TRIES = 3;
const OTHER_ETAG = '"00000000000000000000000000000000"';

/**
 * Writes an object of a fixed content as `name`, reads it back, and tries to overwrite it on conditions that do not hold.
 * Idempotent. Rejects with `DestinationError`.
 */
export async function probeBucket(bucket: Bucket, name: string, signal: AbortSignal): Promise<void> {
  const probe = makeProbe(name);
  await writeProbe(bucket, probe, signal);
  await checkContent(bucket, probe, signal);
  await checkRefusal(bucket, probe, { condition: { IfNoneMatch: '*' }, signal });
  await checkRefusal(bucket, probe, { condition: { IfMatch: OTHER_ETAG }, signal });
}

function makeProbe(name: string): ExportObject {
  return {
    name,
    contentType: 'application/json',
    bytes: CONTENT.length,
    sha256: createHash('sha256').update(CONTENT).digest(),
    revision: 1,
    read: ({ start, end } = { start: 0, end: CONTENT.length }) =>
      Readable.from([CONTENT.subarray(start, end)], { objectMode: false }),
  };
}

/** Writes the probe over whatever is there. */
async function writeProbe(bucket: Bucket, probe: ExportObject, signal: AbortSignal): Promise<void> {
  let stored: Stored = { state: 'absent' };
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const result = await storeObject(bucket, probe, { condition: conditionOf(stored), signal });
    if (result === 'stored') return;
    if (result === 'conflict') stored = await readStored(bucket, probe.name, signal);
    if (stored.state === 'hidden') throw stored.error;
  }
  throw new DestinationError(
    `the store refuses to overwrite ${bucket.name}/${probe.name} on the condition of its ETag`,
  );
}

async function checkContent(bucket: Bucket, probe: ExportObject, signal: AbortSignal): Promise<void> {
  const resource = `${bucket.name}/${probe.name}`;
  const stored = await readStored(bucket, probe.name, signal);
  if (stored.state === 'hidden') throw stored.error;
  if (stored.state === 'absent')
    throw new DestinationError(`the store does not have ${resource} after it was written`);
  if (stored.revision !== probe.revision || stored.sha256 === undefined)
    throw new DestinationError(`the store does not keep the metadata of ${resource}; use another store`);
  const command = new bucket.sdk.GetObjectCommand({ Bucket: bucket.name, Key: probe.name });
  const operation = { action: 's3:GetObject', resource };
  const content = await call(bucket, { operation, signal }, async (abortSignal) => {
    const { Body } = await bucket.client.send(command, { abortSignal });
    return Body?.transformToByteArray();
  });
  if (content === undefined || !CONTENT.equals(content))
    throw new DestinationError(`the store returns another content than was written to ${resource}`);
}

async function checkRefusal(
  bucket: Bucket,
  probe: ExportObject,
  upload: Parameters<typeof storeObject>[2],
): Promise<void> {
  if ((await storeObject(bucket, probe, upload)) !== 'stored') return;
  const [condition] = Object.keys(upload.condition);
  const header = condition === 'IfMatch' ? 'If-Match' : 'If-None-Match';
  throw new DestinationError(
    `the store ignores the condition ${header} of writes, so a late write could undo a newer one; use another store`,
  );
}
