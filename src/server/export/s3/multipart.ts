/**
 * Uploads an object in parts, on a condition: two parts at a time, each with its checksum. Parts that are not completed
 * cost the bucket's owner money, so every failure aborts the upload, and the next upload of the object aborts what a
 * killed process left. A lifecycle rule of the bucket for incomplete uploads covers the rest.
 */
import { hash } from 'node:crypto';
import type { CompletedPart } from '@aws-sdk/client-s3';
import { DestinationError, type ExportObject } from '../destination.js';
import { type Bucket, send } from './bucket.js';
import { SourceError } from './error.js';
import { describeObject, type Upload } from './put.js';

const PARTS_IN_FLIGHT = 2;
const MAX_PARTS = 10_000;
/** How long aborting an upload may take, which goes on for this long after the writer's signal. */
const ABORT_TIMEOUT_MS = 5_000;
/** More uploads of one object are not left by crashes. */
const MAX_LEFTOVERS = 20;

type Part = { number: number; start: number; end: number };

/** Streams an object into the bucket. Rejects with the SDK's error, also if the condition does not hold. */
export async function uploadInParts(bucket: Bucket, object: ExportObject, upload: Upload): Promise<void> {
  const { signal, condition } = upload;
  await abortLeftovers(bucket, object.name, signal);
  const { sdk, client } = bucket;
  const create = new sdk.CreateMultipartUploadCommand({
    ...describeObject(bucket, object),
    ChecksumAlgorithm: 'SHA256',
  });
  const operation = operationOf(bucket, object.name);
  const { UploadId } = await send(bucket, { operation, signal }, (abortSignal) =>
    client.send(create, { abortSignal }),
  );
  if (UploadId === undefined) throw new DestinationError('the store gives no id for an upload in parts');
  const target = { Bucket: bucket.name, Key: object.name, UploadId };
  try {
    const Parts = await uploadParts(bucket, object, { target, signal });
    const complete = new sdk.CompleteMultipartUploadCommand({
      ...target,
      ...condition,
      MultipartUpload: { Parts },
    });
    await send(bucket, { operation, signal }, (abortSignal) => client.send(complete, { abortSignal }));
  } catch (error) {
    await abortUpload(bucket, target);
    throw error;
  }
}

type Target = { Bucket: string; Key: string; UploadId: string };

/** Uploads all parts. Once one fails, the others are aborted and awaited. */
async function uploadParts(
  bucket: Bucket,
  object: ExportObject,
  { target, signal }: { target: Target; signal: AbortSignal },
): Promise<CompletedPart[]> {
  const failed = new AbortController();
  const abort = () => failed.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const uploaded: CompletedPart[] = [];
  const partBytes = Math.max(bucket.partBytes, Math.ceil(object.bytes / MAX_PARTS));
  const parts = partsOf(object.bytes, partBytes);
  const work = async () => {
    const buffer = Buffer.allocUnsafeSlow(partBytes);
    for (const part of parts)
      uploaded[part.number - 1] = await uploadPart(bucket, object, {
        part,
        buffer,
        target,
        signal: failed.signal,
      });
  };
  const workers = Array.from({ length: PARTS_IN_FLIGHT }, () =>
    work().catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  await Promise.allSettled(workers);
  signal.removeEventListener('abort', abort);
  if (failed.signal.aborted) throw failed.signal.reason;
  return uploaded;
}

function* partsOf(bytes: number, partBytes: number): Generator<Part> {
  for (let number = 1, start = 0; start < bytes; number++, start += partBytes)
    yield { number, start, end: Math.min(start + partBytes, bytes) };
}

async function uploadPart(
  bucket: Bucket,
  object: ExportObject,
  { part, buffer, target, signal }: { part: Part; buffer: Buffer; target: Target; signal: AbortSignal },
): Promise<CompletedPart> {
  const body = await readPart(object, part, { buffer, signal });
  const checksum = hash('sha256', body, 'base64');
  const command = new bucket.sdk.UploadPartCommand({
    ...target,
    PartNumber: part.number,
    Body: body,
    ContentLength: body.length,
    ChecksumSHA256: checksum,
  });
  const operation = operationOf(bucket, object.name);
  const { ETag } = await send(bucket, { operation, signal }, (abortSignal) =>
    bucket.client.send(command, { abortSignal }),
  );
  return { PartNumber: part.number, ETag, ChecksumSHA256: checksum };
}

/**
 * Reads a part into a buffer: its checksum must be known before its first byte is sent. The buffer serves for many parts:
 * new ones for each would cost a third of the CPU, in collections of garbage that their size sets off.
 */
async function readPart(
  object: ExportObject,
  { start, end }: Part,
  { buffer, signal }: { buffer: Buffer; signal: AbortSignal },
): Promise<Buffer> {
  const part = buffer.subarray(0, end - start);
  try {
    if (object.fill !== undefined) await object.fill(part, start);
    else await collect(object.read({ start, end }), part, signal);
  } catch (cause) {
    throw new SourceError('', { cause });
  }
  signal.throwIfAborted();
  return part;
}

async function collect(stream: AsyncIterable<Uint8Array>, part: Buffer, signal: AbortSignal): Promise<void> {
  let filled = 0;
  for await (const chunk of stream) {
    if (signal.aborted) return;
    part.set(chunk, filled);
    filled += chunk.length;
  }
  if (filled < part.length) throw new Error('the object is shorter than it was');
}

/** Aborts what earlier uploads of this object left. A store or a policy that does not allow it is no failure. */
async function abortLeftovers(bucket: Bucket, name: string, signal: AbortSignal): Promise<void> {
  const command = new bucket.sdk.ListMultipartUploadsCommand({
    Bucket: bucket.name,
    Prefix: name,
    MaxUploads: MAX_LEFTOVERS,
  });
  const operation = operationOf(bucket, name);
  const { Uploads = [] } = await send(bucket, { operation, signal }, (abortSignal) =>
    bucket.client.send(command, { abortSignal }),
  ).catch(() => ({ Uploads: [] }));
  signal.throwIfAborted();
  for (const { Key, UploadId } of Uploads) {
    if (Key === name && UploadId !== undefined)
      await abortUpload(bucket, { Bucket: bucket.name, Key, UploadId });
  }
}

/** Aborts an upload whatever has been aborted already. What it fails to abort, the next upload finds. */
async function abortUpload(bucket: Bucket, target: Target): Promise<void> {
  const command = new bucket.sdk.AbortMultipartUploadCommand(target);
  const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
  await bucket.client.send(command, { abortSignal }).catch(() => undefined);
}

function operationOf(bucket: Bucket, name: string) {
  return { action: 's3:PutObject', resource: `${bucket.name}/${name}` };
}
