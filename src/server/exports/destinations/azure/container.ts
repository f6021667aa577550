/** A container through the official SDK. */
import { buffer, text } from 'node:stream/consumers';
import type { ContainerClient } from '@azure/storage-blob';
import { parseRevision, revisionMetadata } from '../compare-and-swap.js';
import { contentMd5 } from '../content-md5.js';
import { DestinationError } from '../destination.js';
import type { ExportObject, ObjectStore, Stored, StoredText } from '../object-store.js';
import { AzureFailure, type AzureSubject, isLostRace, toAzureError } from './azure-error.js';

/** An open container. Blobs above `singleBytes` are uploaded in blocks of `blockBytes`. */
type ContainerDeps = {
  client: ContainerClient;
  subject: AzureSubject;
  singleBytes: number;
  blockBytes: number;
};

/** Opens a container as a store. */
export function openContainer(deps: ContainerDeps): ObjectStore {
  return {
    read: (name, signal) => explained(deps, signal, () => readBlob(deps, name, signal)),
    readText: (name, signal) => explained(deps, signal, () => readText(deps, name, signal)),
    readBytes: (name, range, signal) => explained(deps, signal, () => readRange(deps, name, range, signal)),
    write: (object, stored, signal) =>
      explained(deps, signal, () => writeBlob(deps, { object, condition: conditionOf(stored), signal })),
  };
}

async function explained<T>(
  { subject }: ContainerDeps,
  signal: AbortSignal,
  operation: () => Promise<T>,
): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof AzureFailure ? toAzureError(error, subject) : error;
  }
}

async function readBlob(
  { client }: ContainerDeps,
  name: string,
  signal: AbortSignal,
): Promise<Stored | undefined> {
  try {
    const { etag, metadata = {} } = await client
      .getBlockBlobClient(name)
      .getProperties({ abortSignal: signal });
    if (etag === undefined) throw new DestinationError(`the store gives no ETag of ${name}`);
    return { version: etag, ...parseRevision(metadata) };
  } catch (error) {
    if (error instanceof AzureFailure && error.status === 404) return undefined;
    throw error;
  }
}

async function readText(
  { client }: ContainerDeps,
  name: string,
  signal: AbortSignal,
): Promise<StoredText | undefined> {
  try {
    const { etag, readableStreamBody } = await client
      .getBlockBlobClient(name)
      .download(0, undefined, { abortSignal: signal });
    if (etag === undefined || readableStreamBody === undefined)
      throw new DestinationError(`the store gives no ETag of ${name}`);
    return { version: etag, text: await text(readableStreamBody) };
  } catch (error) {
    if (error instanceof AzureFailure && error.code === 'BlobNotFound') return undefined;
    throw error;
  }
}

async function readRange(
  { client }: ContainerDeps,
  name: string,
  { start, end }: { start: number; end: number },
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  try {
    const { readableStreamBody } = await client
      .getBlockBlobClient(name)
      .download(start, end - start, { abortSignal: signal });
    return readableStreamBody === undefined ? new Uint8Array() : await buffer(readableStreamBody);
  } catch (error) {
    if (error instanceof AzureFailure && error.code === 'BlobNotFound') return undefined;
    if (error instanceof AzureFailure && error.code === 'InvalidRange') return new Uint8Array();
    throw error;
  }
}

type Condition = { ifNoneMatch: string } | { ifMatch: string };
type Write = { object: ExportObject; condition: Condition; signal: AbortSignal };

function conditionOf(stored: Pick<Stored, 'version'> | undefined): Condition {
  return stored === undefined ? { ifNoneMatch: '*' } : { ifMatch: stored.version };
}

async function writeBlob(deps: ContainerDeps, write: Write): Promise<boolean> {
  const { object, signal } = write;
  const isSingle = object.bytes <= deps.singleBytes;
  if (await wins(() => (isSingle ? uploadAtOnce : uploadBlocks)(deps, write))) return true;
  // Blocks of an unfinished upload can keep a name that holds no blob. A commit replaces them.
  const isTakenByNothing = isSingle && 'ifNoneMatch' in write.condition;
  if (!isTakenByNothing || (await readBlob(deps, object.name, signal)) !== undefined) return false;
  return await wins(() => uploadBlocks(deps, write));
}

/** Runs an upload; false if another writer was faster. */
async function wins(upload: () => Promise<void>): Promise<boolean> {
  try {
    await upload();
    return true;
  } catch (error) {
    if (error instanceof AzureFailure && isLostRace(error)) return false;
    throw error;
  }
}

async function uploadAtOnce({ client }: ContainerDeps, { object, condition, signal }: Write): Promise<void> {
  const md5 = await contentMd5(object, signal);
  const blob = client.getBlockBlobClient(object.name);
  await blob.upload(() => object.read(), object.bytes, {
    abortSignal: signal,
    conditions: condition,
    metadata: revisionMetadata(object),
    blobHTTPHeaders: { ...httpHeaders(object), blobContentMD5: md5 },
  });
}

function httpHeaders({ contentType, cacheControl }: ExportObject) {
  return {
    blobContentType: contentType,
    ...(cacheControl !== undefined && { blobCacheControl: cacheControl }),
  };
}

/** Blocks are invisible until their list is committed. Those of another content have other ids. */
async function uploadBlocks(
  { client, blockBytes }: ContainerDeps,
  { object, condition, signal }: Write,
): Promise<void> {
  const blob = client.getBlockBlobClient(object.name);
  const metadata = revisionMetadata(object);
  const ids: string[] = [];
  for (let start = 0; start < object.bytes; start += blockBytes) {
    const range = { start, end: Math.min(object.bytes, start + blockBytes) };
    const label = `${metadata.sha256.slice(0, 32)}-${String(ids.length).padStart(6, '0')}`;
    const id = Buffer.from(label).toString('base64');
    const transactionalContentMD5 = await contentMd5(object, signal, range);
    const options = { abortSignal: signal, transactionalContentMD5 };
    await blob.stageBlock(id, () => object.read(range), range.end - range.start, options);
    ids.push(id);
  }
  const blobHTTPHeaders = httpHeaders(object);
  await blob.commitBlockList(ids, { abortSignal: signal, conditions: condition, metadata, blobHTTPHeaders });
}
