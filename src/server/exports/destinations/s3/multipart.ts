/**
 * Uploads an object in parts, on a condition, also while it is still being rendered: two parts at a time, each with its
 * checksum. A few concurrent uploads hold each part in a buffer until it is confirmed, which takes a third less CPU than a
 * stream, whose chunks become garbage. Uploads share no buffer: a store that answers early goes on reading, and must not see
 * another project's bytes. Parts that are not completed cost the bucket's owner money, so every failure
 * aborts the upload, and the next upload of the object aborts what a killed process left. A lifecycle rule of the bucket
 * for incomplete uploads covers the rest.
 */
import { Readable } from 'node:stream';
import type { CompletedPart } from '@aws-sdk/client-s3';
import { untilAborted } from '../../../core/until-aborted.js';
import { DestinationError, type StreamedObject, type WriteControl } from '../destination.js';
import type { ExportObject } from '../object-store.js';
import { type Bucket, send } from './bucket.js';
import { MAX_PARTS, type Part, type PartSource, partsOfStreamed, partsOfWhole } from './part-sources.js';
import { type Described, describeObject, type Upload } from './put.js';

const PARTS_IN_FLIGHT = 2;
/** Timeout of aborting an upload, also after the writer's signal. */
const ABORT_TIMEOUT_MS = 5_000;
/** Maximum unfinished uploads of one object to abort; crashes leave fewer. */
const MAX_LEFTOVERS = 20;

/** The writer was no longer current once all parts were stored. */
export class NotCurrent extends Error {}

/** Uploads an object. Rejects with the SDK's error, also if the condition does not hold. */
export async function uploadInParts(bucket: Bucket, object: ExportObject, upload: Upload): Promise<void> {
  const partBytes = Math.max(bucket.partBytes, Math.ceil(object.bytes / MAX_PARTS));
  const isBuffered =
    object.fill !== undefined && partBytes === bucket.partBytes && bucket.buffered.tryAcquire();
  const parts = { next: partsOfWhole(object, partBytes), isBuffered };
  try {
    await uploadParts(bucket, object, parts, { ...upload, isCurrent: async () => true });
  } finally {
    if (isBuffered) bucket.buffered.release();
  }
}

/**
 * Uploads an object while it is rendered, and checks `isCurrent` at the end. The caller holds a permit of
 * `bucket.buffered`. Rejects as `uploadInParts` does, and with `NotCurrent`.
 */
export async function uploadStreamed(
  bucket: Bucket,
  object: StreamedObject,
  upload: Upload & Pick<WriteControl, 'isCurrent'>,
): Promise<void> {
  await uploadParts(bucket, object, { next: partsOfStreamed(object), isBuffered: true }, upload);
}

/** The parts of an upload, and whether they are held in buffers. */
type Parts = { next: PartSource; isBuffered: boolean };

async function uploadParts(
  bucket: Bucket,
  object: Described,
  parts: Parts,
  { signal, condition, isCurrent }: Upload & Pick<WriteControl, 'isCurrent'>,
): Promise<void> {
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
    const Parts = await sendParts(bucket, target, parts, signal);
    if (!(await isCurrent())) throw new NotCurrent();
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

/** Sends all parts. Once one fails, the others are aborted and awaited. */
async function sendParts(
  bucket: Bucket,
  target: Target,
  { next, isBuffered }: Parts,
  signal: AbortSignal,
): Promise<CompletedPart[]> {
  const failed = new AbortController();
  const abort = () => failed.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const sent: CompletedPart[] = [];
  const work = async () => {
    const buffer = isBuffered ? Buffer.allocUnsafeSlow(bucket.partBytes) : undefined;
    for (;;) {
      const part = await untilAborted(next(buffer, failed.signal), failed.signal);
      if (part === undefined) return;
      sent[part.number - 1] = await sendPart(bucket, target, part, failed.signal);
    }
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
  return sent;
}

async function sendPart(
  bucket: Bucket,
  target: Target,
  { number, bytes, body, checksum }: Part,
  signal: AbortSignal,
): Promise<CompletedPart> {
  const command = new bucket.sdk.UploadPartCommand({
    ...target,
    PartNumber: number,
    Body: body,
    ContentLength: bytes,
    ChecksumSHA256: checksum,
  });
  const operation = operationOf(bucket, target.Key);
  const stream = body instanceof Readable ? { body } : {};
  const { ETag } = await send(bucket, { operation, signal, ...stream }, (abortSignal) =>
    bucket.client.send(command, { abortSignal }),
  );
  return { PartNumber: number, ETag, ChecksumSHA256: checksum };
}

/** Aborts unfinished uploads of this object. Ignores a store or a policy that does not allow it. */
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

/** Aborts the upload even after the caller's signal has aborted. If that fails, the next upload finds it. */
async function abortUpload(bucket: Bucket, target: Target): Promise<void> {
  const command = new bucket.sdk.AbortMultipartUploadCommand(target);
  const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
  await bucket.client.send(command, { abortSignal }).catch(() => undefined);
}

function operationOf(bucket: Bucket, name: string) {
  return { action: 's3:PutObject', resource: `${bucket.name}/${name}` };
}
