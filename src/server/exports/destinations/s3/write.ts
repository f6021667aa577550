/** Objects of a bucket, and conditional writes to them. The revision and the SHA-256 are in the metadata. */
import type { HeadObjectCommandOutput } from '@aws-sdk/client-s3';
import { parseRevision, writeNewer } from '../compare-and-swap.js';
import {
  DestinationError,
  type StreamedObject,
  type WriteControl,
  type WriteOutcome,
} from '../destination.js';
import type { ExportObject, ObjectStore, StoredText } from '../object-store.js';
import { type Bucket, send } from './bucket.js';
import {
  isClockCorrected,
  isExpired,
  isLostRace,
  SourceError,
  statusOf,
  toDestinationError,
} from './error.js';
import { NotCurrent, uploadInParts, uploadStreamed } from './multipart.js';
import { type Condition, putObject, type Upload } from './put.js';

/** The object of a name. `hidden`: its existence cannot be read. */
type Stored =
  | { state: 'absent' }
  | { state: 'hidden'; error: DestinationError }
  | { state: 'present'; etag: string; revision: number | undefined; sha256: string | undefined };

/** The bucket as a store of objects. */
export function openStore(bucket: Bucket): ObjectStore {
  const hidden = new Map<string, DestinationError>();
  return {
    read: async (name, signal) => {
      const stored = await readStored(bucket, name, signal);
      if (stored.state === 'hidden') hidden.set(name, stored.error);
      else hidden.delete(name);
      return stored.state === 'present' ? { version: stored.etag, ...stored } : undefined;
    },
    readText: (name, signal) => readText(bucket, name, signal),
    readBytes: (name, range, signal) => readRange(bucket, name, range, signal),
    write: async (object, stored, signal) => {
      const condition = stored === undefined ? IF_ABSENT : { IfMatch: stored.version };
      const result = await storeObject(bucket, object, { condition, signal });
      const error = hidden.get(object.name);
      // The name is taken by an object whose revision cannot be read.
      if (result === 'conflict' && error !== undefined) throw error;
      return result === 'stored';
    },
  };
}

/** Reads the version, the revision and the SHA-256 of the object of a name. */
async function readStored(bucket: Bucket, name: string, signal: AbortSignal): Promise<Stored> {
  const operation = { action: 's3:GetObject', resource: `${bucket.name}/${name}` };
  const command = new bucket.sdk.HeadObjectCommand({ Bucket: bucket.name, Key: name });
  try {
    const head = await send(bucket, { operation, signal }, (abortSignal) =>
      bucket.client.send(command, { abortSignal }),
    );
    return parseStored(head, operation.resource);
  } catch (error) {
    signal.throwIfAborted();
    if (statusOf(error) === 404) return { state: 'absent' };
    const failure = toDestinationError(error, operation);
    // Without s3:ListBucket S3 answers 403 for a name that it does not hold. An answer to HEAD has no body that tells
    // the reason, but the answer to the write that follows has.
    if ([400, 403].includes(statusOf(error))) return { state: 'hidden', error: failure };
    throw failure;
  }
}

async function readText(bucket: Bucket, name: string, signal: AbortSignal): Promise<StoredText | undefined> {
  const operation = { action: 's3:GetObject', resource: `${bucket.name}/${name}` };
  const command = new bucket.sdk.GetObjectCommand({ Bucket: bucket.name, Key: name });
  try {
    return await send(bucket, { operation, signal }, async (abortSignal) => {
      const { ETag: version, Body } = await bucket.client.send(command, { abortSignal });
      if (!version || Body === undefined)
        throw new DestinationError(`the store gives no ETag for ${operation.resource}; use another store`);
      return { version, text: await Body.transformToString() };
    });
  } catch (error) {
    signal.throwIfAborted();
    if (statusOf(error) === 404 && (error as Error).name !== 'NoSuchBucket') return undefined;
    throw toDestinationError(error, operation);
  }
}

async function readRange(
  bucket: Bucket,
  name: string,
  { start, end }: { start: number; end: number },
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const operation = { action: 's3:GetObject', resource: `${bucket.name}/${name}` };
  const range = `bytes=${start}-${end - 1}`;
  const command = new bucket.sdk.GetObjectCommand({ Bucket: bucket.name, Key: name, Range: range });
  try {
    return await send(bucket, { operation, signal }, async (abortSignal) => {
      const { ContentRange, Body } = await bucket.client.send(command, { abortSignal });
      const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
      // A store without ranges sends all of the object.
      return ContentRange === undefined ? bytes.subarray(start, end) : bytes;
    });
  } catch (error) {
    signal.throwIfAborted();
    if (statusOf(error) === 404 && (error as Error).name !== 'NoSuchBucket') return undefined;
    if (statusOf(error) === 416) return new Uint8Array();
    throw toDestinationError(error, operation);
  }
}

function parseStored({ ETag, Metadata = {} }: HeadObjectCommandOutput, resource: string): Stored {
  if (ETag === undefined || ETag === '')
    throw new DestinationError(`the store gives no ETag for ${resource}; use another store`);
  return { state: 'present', etag: ETag, ...parseRevision(Metadata) };
}

const IF_ABSENT = { IfNoneMatch: '*' } as const;

/** The condition that the object is unchanged since it was read. */
function conditionOf(stored: Stored): Condition {
  return stored.state === 'present' ? { IfMatch: stored.etag } : IF_ABSENT;
}

/**
 * Stores an object on a condition: `conflict` if the condition does not hold, `renewed` if it has to be tried again
 * because the credentials had expired, or our clock was far from the store's.
 */
async function storeObject(
  bucket: Bucket,
  object: ExportObject,
  upload: Upload,
): Promise<'stored' | 'conflict' | 'renewed'> {
  const store = object.bytes > bucket.multipartBytes ? uploadInParts : putObject;
  return outcomeOf(bucket, object.name, upload, store(bucket, object, upload));
}

async function outcomeOf(
  bucket: Bucket,
  name: string,
  { signal }: Pick<Upload, 'signal'>,
  storing: Promise<void>,
): Promise<'stored' | 'conflict' | 'renewed'> {
  try {
    await storing;
    return 'stored';
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NotCurrent) throw error;
    if (error instanceof SourceError) throw error.cause;
    if (isLostRace(error)) return 'conflict';
    if (isClockCorrected(error)) return 'renewed';
    if (!isExpired(error) || bucket.session === undefined)
      throw toDestinationError(error, { action: 's3:PutObject', resource: `${bucket.name}/${name}` });
    bucket.session.forget();
    return 'renewed';
  }
}

/**
 * Writes a large object while it is rendered; see `OpenDestination.write`. Its metadata has no SHA-256, so that the same
 * object is not recognised in its place: it is superseded by itself, and written again as a later revision. If anything else
 * is in its place, or other uploads hold all buffers, the object is written once it is whole. A row takes 27 µs of
 * CPU (`npm run bench -- --only exports`).
 */
export async function writeStreamed(
  bucket: Bucket,
  object: StreamedObject,
  control: WriteControl,
): Promise<WriteOutcome> {
  const write = (whole: ExportObject) => writeNewer(openStore(bucket), whole, control);
  const small = await object.upTo(bucket.multipartBytes);
  if (small !== undefined) return write(small);
  const stored = await readStored(bucket, object.name, control.signal);
  const isOlder = stored.state === 'present' && (stored.revision ?? 0) < object.revision;
  if (stored.state !== 'absent' && !isOlder) return write(await object.whole());
  if (!(await control.isCurrent())) return SUPERSEDED;
  if (!bucket.buffered.tryAcquire()) return write(await object.whole());
  try {
    const upload = { ...control, condition: conditionOf(stored) };
    const result = await outcomeOf(bucket, object.name, control, uploadStreamed(bucket, object, upload));
    if (result === 'stored') return { outcome: 'written' };
  } catch (error) {
    if (error instanceof NotCurrent) return SUPERSEDED;
    throw error;
  } finally {
    bucket.buffered.release();
  }
  return write(await object.whole());
}

const SUPERSEDED = { outcome: 'superseded', revision: undefined } as const;
