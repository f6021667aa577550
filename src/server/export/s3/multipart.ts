/**
 * Uploads an object in parts, on a condition, also while its bytes are still being made: two parts at a time, each with
 * its checksum. The first
 * few uploads at a time read each part into a buffer, which takes a third less CPU than a stream, whose chunks become
 * garbage. An upload has buffers of its own: a store that answers early goes on reading, and must not see what others ship. Parts that are not completed
 * cost the bucket's owner money, so every failure aborts the upload, and the next upload of the object aborts what a
 * killed process left. A lifecycle rule of the bucket for incomplete uploads covers the rest.
 */
import { createHash, hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { CompletedPart } from '@aws-sdk/client-s3';
import {
  DestinationError,
  type ExportObject,
  type GrowingObject,
  type WriteControl,
} from '../destination.js';
import { untilAborted } from '../until-aborted.js';
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

/** An object to upload. `grown` is that of a `GrowingObject`. */
type Source = Pick<ExportObject, 'name' | 'contentType' | 'revision' | 'read' | 'fill'> &
  Partial<Pick<ExportObject, 'sha256'>> &
  Pick<GrowingObject, 'grown'>;

/** The writer was not current any more once all parts were there. */
export class NotCurrent extends Error {}

/** Uploads an object. Rejects with the SDK's error, also if the condition does not hold. */
export async function uploadInParts(bucket: Bucket, object: ExportObject, upload: Upload): Promise<void> {
  const { bytes } = object;
  const partBytes = Math.max(bucket.partBytes, Math.ceil(bytes / MAX_PARTS));
  const grown = async (wanted: number) => Math.min(wanted, bytes);
  await uploadSource(bucket, { ...object, grown }, { ...upload, partBytes, isCurrent: async () => true });
}

/**
 * Uploads an object while it grows, which asks `isCurrent` at the end. Rejects as `uploadInParts` does, and with
 * `NotCurrent`.
 */
export async function uploadGrowing(
  bucket: Bucket,
  object: GrowingObject,
  upload: Upload & Pick<WriteControl, 'isCurrent'>,
): Promise<void> {
  await uploadSource(bucket, object, { ...upload, partBytes: bucket.partBytes });
}

type SourceUpload = Upload & Pick<WriteControl, 'isCurrent'> & { partBytes: number };

async function uploadSource(bucket: Bucket, object: Source, upload: SourceUpload): Promise<void> {
  const { signal, condition, partBytes } = upload;
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
    const Parts = await uploadParts(bucket, object, { target, signal, partBytes });
    if (!(await upload.isCurrent())) throw new NotCurrent();
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
  object: Source,
  { target, signal, partBytes }: { target: Target; signal: AbortSignal; partBytes: number },
): Promise<CompletedPart[]> {
  const failed = new AbortController();
  const abort = () => failed.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const uploaded: CompletedPart[] = [];
  const nextPart = createParts(object, partBytes);
  const isBuffered = object.fill !== undefined && partBytes === bucket.partBytes && bucket.buffered.take();
  const work = async () => {
    const buffer = isBuffered ? Buffer.allocUnsafeSlow(partBytes) : undefined;
    for (;;) {
      const part = await untilAborted(nextPart(), failed.signal);
      if (part === undefined) return;
      const upload = { part, target, buffer, signal: failed.signal };
      uploaded[part.number - 1] = await uploadPart(bucket, object, upload);
    }
  };
  const workers = Array.from({ length: PARTS_IN_FLIGHT }, () =>
    work().catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  await Promise.allSettled(workers);
  if (isBuffered) bucket.buffered.give();
  signal.removeEventListener('abort', abort);
  if (failed.signal.aborted) throw failed.signal.reason;
  return uploaded;
}

/** Returns a function that gives the next part once that has grown; undefined after the last. */
function createParts({ grown }: Source, partBytes: number): () => Promise<Part | undefined> {
  let parts = 0;
  return async () => {
    const number = ++parts;
    const start = (number - 1) * partBytes;
    const end = await grown(start + partBytes).catch(failedSource);
    if (end <= start) return undefined;
    if (number > MAX_PARTS)
      throw new DestinationError('the object is too large for the store; use compression');
    return { number, start, end };
  };
}

/** `buffer`: for the part's bytes; undefined if they are to be streamed. */
type PartUpload = { part: Part; target: Target; buffer: Buffer | undefined; signal: AbortSignal };

async function uploadPart(bucket: Bucket, object: Source, upload: PartUpload): Promise<CompletedPart> {
  const { part, buffer } = upload;
  if (object.fill === undefined || buffer === undefined) return streamPart(bucket, object, upload);
  const body = buffer.subarray(0, part.end - part.start);
  await object.fill(body, part.start).catch(failedSource);
  return sendPart(bucket, object, upload, { body, checksum: hash('sha256', body, 'base64') });
}

/** Reads a part twice: its checksum must be known before its first byte is sent. */
async function streamPart(bucket: Bucket, object: Source, upload: PartUpload): Promise<CompletedPart> {
  const sha256 = createHash('sha256');
  await pipeline(object.read(upload.part), sha256, { signal: upload.signal }).catch((cause: unknown) => {
    upload.signal.throwIfAborted();
    failedSource(cause);
  });
  return sendPart(bucket, object, upload, {
    body: object.read(upload.part),
    checksum: sha256.digest('base64'),
  });
}

function failedSource(cause: unknown): never {
  throw new SourceError('', { cause });
}

async function sendPart(
  bucket: Bucket,
  object: Source,
  { part, target, signal }: PartUpload,
  { body, checksum }: { body: Readable | Buffer; checksum: string },
): Promise<CompletedPart> {
  const command = new bucket.sdk.UploadPartCommand({
    ...target,
    PartNumber: part.number,
    Body: body,
    ContentLength: part.end - part.start,
    ChecksumSHA256: checksum,
  });
  const operation = operationOf(bucket, object.name);
  const stream = body instanceof Readable ? { body } : {};
  const { ETag } = await send(bucket, { operation, signal, ...stream }, (abortSignal) =>
    bucket.client.send(command, { abortSignal }),
  );
  return { PartNumber: part.number, ETag, ChecksumSHA256: checksum };
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
