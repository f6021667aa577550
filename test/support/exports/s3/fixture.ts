/** What tests of exports to S3 have in common: a store, a destination in it, and objects to write. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { DestinationKind, ExportDestinationSchema } from '../../../../gen/attestation/v1/exports_pb.js';
import { type ObjectStorage, objectStorage } from '../../../../src/config/object-storage.js';
import {
  type DestinationContext,
  destinationMembers,
  type OpenDestination,
} from '../../../../src/server/exports/destinations/destination.js';
import type { ExportObject } from '../../../../src/server/exports/destinations/object-store.js';
import { type S3Options as OpenOptions, openS3 } from '../../../../src/server/exports/destinations/s3/s3.js';
import type { AccessKeys } from './keys.js';
import { type S3Options, type S3Server, startS3Server } from './s3-server.js';

export const BUCKET = 'attestations';
export const EXPORT_ID = 'exp_01KE8GAT4V6W8X0Y2Z4A6B8C0D';
export const PROJECT_ID = 'prj_01KE8G9Q2R4T6V8X0Z1B3D5F7H';
export const OWNER = { accessKeyId: 'AKIAOWNER', secretAccessKey: 'owner+secret/key' };

/** Starts a store with one bucket, which `OWNER` may write to, until the test ends. */
export async function startStore(
  t: Pick<Test, 'teardown'>,
  options: Partial<S3Options> = {},
): Promise<S3Server & { keys: AccessKeys }> {
  const { accessKeyId, secretAccessKey } = OWNER;
  const keys: AccessKeys = options.keys ?? new Map([[accessKeyId, { secretAccessKey }]]);
  const server = await startS3Server({ buckets: [BUCKET], ...options, keys });
  t.teardown(server.close);
  return { ...server, keys };
}

/** The value of a setting that names a bucket of the store, with the keys of `OWNER`; `url` is the store's. */
export function bucketSetting(url: string, prefix: string, bucket = BUCKET): string {
  const query = new URLSearchParams({
    endpoint: url,
    region: 'us-east-1',
    access_key_id: OWNER.accessKeyId,
    secret_access_key: OWNER.secretAccessKey,
  });
  return `s3://${bucket}/${prefix}?${query}`;
}

/** That setting as the service reads it. */
export function bucketAt(url: string, prefix = 'own'): ObjectStorage {
  return objectStorage.parse(bucketSetting(url, prefix));
}

/** An object's bytes, as the store has them now. */
export function storedBytes({ buckets }: S3Server, key: string): Buffer | undefined {
  const object = buckets.get(BUCKET)?.objects.get(key);
  return object && Buffer.concat(object.segments.map(({ path }) => readFileSync(path)));
}

/** A destination's context; by default of a bucket in AWS without credentials. */
export function contextOf(
  destination: MessageInitShape<typeof ExportDestinationSchema>,
  context: Partial<DestinationContext> = {},
): DestinationContext {
  const init = { kind: DestinationKind.S3, bucket: BUCKET, prefix: 'copies', ...destination };
  return {
    destination: destinationMembers(create(ExportDestinationSchema, init)),
    exportId: EXPORT_ID,
    projectId: PROJECT_ID,
    allowInsecure: true,
    ambientCredentials: [],
    temporaryDirectory: tmpdir(),
    ...context,
  };
}

/** Opens the store's bucket with the keys of `OWNER`, until the test ends. */
export async function openBucket(
  t: Pick<Test, 'teardown'>,
  { url }: { url: string },
  destination: MessageInitShape<typeof ExportDestinationSchema> = {},
  options: OpenOptions = {},
): Promise<OpenDestination> {
  const opened = await openS3(contextOf({ endpoint: url, ...OWNER, ...destination }), options);
  t.teardown(() => opened.close());
  return opened;
}

/** An object of this content. */
export function objectOf(
  content: Uint8Array | string,
  { name = 'copies/day/batch.jsonl', revision = 1 } = {},
): ExportObject {
  const bytes = Buffer.from(content);
  return {
    name,
    contentType: 'application/x-ndjson',
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest(),
    revision,
    read: ({ start, end } = { start: 0, end: bytes.length }) =>
      Readable.from(slices(bytes.subarray(start, end)), { objectMode: false }),
  };
}

function* slices(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 65_536) yield bytes.subarray(start, start + 65_536);
}

/** Bytes that do not compress. */
export function randomContent(bytes: number): Buffer {
  return randomBytes(bytes);
}

/** How a writer that holds its lease writes. */
export function writing(signal: AbortSignal = new AbortController().signal) {
  return { signal, isCurrent: async () => true };
}
