/**
 * A bucket through the official SDK. Of its ways to upload only the resumable one is used: it takes an auth client that
 * sends its requests, and so can be aborted. The SDK's own checksum deletes an object that differs, maybe another
 * writer's, so that Google checks the MD5 before an object becomes visible.
 */
import { pipeline } from 'node:stream/promises';
import { parseRevision, revisionMetadata } from '../compare-and-swap.js';
import { contentMd5 } from '../content-md5.js';
import { DestinationError } from '../destination.js';
import type { ExportObject, ObjectStore, Stored, StoredText } from '../object-store.js';
import { ConditionFailed, UploadLost } from './gcs-error.js';
import { createTransport, type TransportDeps } from './transport.js';

type Sdk = typeof import('@google-cloud/storage');

/** Google's service of a universe, or another if `apiEndpoint` is set. */
export type GcsEndpoint = { universeDomain: string; apiEndpoint?: string };

/** How often an object is uploaded if Google loses its upload. */
const MAX_UPLOADS = 3;

/** Dependencies of a bucket. */
type BucketDeps = TransportDeps & { sdk: Sdk; endpoint: GcsEndpoint };

/** Opens a bucket as a store. */
export function openBucket(deps: BucketDeps): ObjectStore {
  return {
    read: (name, signal) => run(deps, signal, (session) => readObject(deps, session, name)),
    readText: (name, signal) => run(deps, signal, (session) => readText(deps, session, name)),
    readBytes: (name, range, signal) => run(deps, signal, (session) => readRange(deps, session, name, range)),
    write: (object, stored, signal) =>
      repeatLost(() => run(deps, signal, (session) => writeObject(deps, session, { object, stored }))),
  };
}

/** Repeats an upload that Google has lost. If Google had stored the object, the condition of the new upload fails. */
async function repeatLost(upload: () => Promise<boolean>): Promise<boolean> {
  for (let uploads = 1; ; uploads++) {
    try {
      return await upload();
    } catch (error) {
      if (!(error instanceof UploadLost) || uploads === MAX_UPLOADS) throw error;
    }
  }
}

type Storage = InstanceType<Sdk['Storage']>;
type Session = { storage: Storage; signal: AbortSignal; failure: () => unknown };

/** Awaits an operation of the SDK and everything that it started. */
async function run<T>(
  deps: BucketDeps,
  signal: AbortSignal,
  operation: (session: Session) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const transport = createTransport(deps, AbortSignal.any([signal, own.signal]));
  const storage = new deps.sdk.Storage({
    ...deps.endpoint,
    authClient: transport.authClient,
    retryOptions: { autoRetry: false, retryableErrorFn: () => false },
  });
  transport.allow(storage.apiEndpoint);
  try {
    return await operation({ storage, signal, failure: transport.failure });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    own.abort();
    await transport.idle();
  }
}

async function readObject(
  { subject }: BucketDeps,
  { storage }: Session,
  name: string,
): Promise<Stored | undefined> {
  const path = `/storage/v1/b/${subject.bucket}/o/${encodeURIComponent(name)}`;
  const url = `${storage.apiEndpoint}${path}?fields=generation,metadata`;
  const { status, data } = await storage.authClient.request<Record<string, unknown>>({ url });
  if (status === 404) return undefined;
  const { generation, metadata } = data;
  return { version: generationOf(generation, name), ...parseRevision(Object(metadata)) };
}

async function readText(
  { subject }: BucketDeps,
  { storage }: Session,
  name: string,
): Promise<StoredText | undefined> {
  const url = `${storage.apiEndpoint}/storage/v1/b/${subject.bucket}/o/${encodeURIComponent(name)}?alt=media`;
  const { status, headers, data } = await storage.authClient.request<string>({ url, responseType: 'text' });
  if (status === 404) return undefined;
  const version = generationOf((headers as unknown as Record<string, string>)['x-goog-generation'], name);
  return { version, text: data };
}

async function readRange(
  { subject }: BucketDeps,
  { storage }: Session,
  name: string,
  { start, end }: { start: number; end: number },
): Promise<Uint8Array | undefined> {
  const url = `${storage.apiEndpoint}/storage/v1/b/${subject.bucket}/o/${encodeURIComponent(name)}?alt=media`;
  const headers = { range: `bytes=${start}-${end - 1}` };
  const { status, data } = await storage.authClient.request<Uint8Array>({
    url,
    headers,
    responseType: 'arraybuffer',
  });
  if (status === 404) return undefined;
  // A store without ranges sends all of the object.
  return status === 206 ? data : data.subarray(start, end);
}

function generationOf(generation: unknown, name: string): string {
  if (typeof generation !== 'string' || !/^[0-9]{1,19}$/.test(generation))
    throw new DestinationError(`Google gives no generation of ${name}`);
  return generation;
}

async function writeObject(
  { subject }: BucketDeps,
  { storage, signal, failure }: Session,
  { object, stored }: { object: ExportObject; stored: Pick<Stored, 'version'> | undefined },
): Promise<boolean> {
  const md5 = await contentMd5(object, signal);
  const upload = storage
    .bucket(subject.bucket)
    .file(object.name)
    .createWriteStream({
      resumable: true,
      validation: false,
      preconditionOpts: { ifGenerationMatch: stored?.version ?? 0 },
      metadata: {
        contentType: object.contentType,
        ...(object.cacheControl !== undefined && { cacheControl: object.cacheControl }),
        contentLength: object.bytes,
        md5Hash: md5.toString('base64'),
        metadata: revisionMetadata(object),
      },
    });
  try {
    await pipeline(object.read(), upload, { signal });
    return true;
  } catch (error) {
    // The SDK replaces some errors by its own.
    const cause = failure() ?? error;
    if (cause instanceof ConditionFailed) return false;
    throw cause;
  }
}
