/** What the server has stored: an index in memory, the bytes on disk. */
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ChecksumName } from './checksums.js';
import { S3Error } from './s3-error.js';

/** A file that an object's bytes are in, or a part of them. */
export type Segment = { path: string; bytes: number };

/** What an object is stored with, beside its bytes. */
export type Description = { contentType: string; metadata: Readonly<Record<string, string>> };

export type StoredObject = Description & {
  segments: readonly Segment[];
  bytes: number;
  /** With its quotes. */
  etag: string;
  lastModified: Date;
  checksum: { name: ChecksumName; value: string } | undefined;
};

/** An upload in parts, not completed. */
export type Upload = Description & {
  id: string;
  key: string;
  initiated: Date;
  /** The algorithm of the checksum that each part must have. */
  algorithm: ChecksumName | undefined;
  parts: Map<number, Part>;
};

export type Part = Segment & { md5: string; checksum: { name: ChecksumName; value: string } | undefined };

/** A bucket: its objects by key and its uploads by id. */
export type StoredBucket = { objects: Map<string, StoredObject>; uploads: Map<string, Upload> };

/** The conditions of a write. */
export type Conditions = { ifMatch: string | undefined; ifNoneMatch: string | undefined };

/** Throws unless the conditions of a write hold. */
export function checkConditions(
  bucket: StoredBucket,
  key: string,
  { ifMatch, ifNoneMatch }: Conditions,
): void {
  const stored = bucket.objects.get(key);
  if (ifNoneMatch !== undefined && ifNoneMatch !== '*')
    throw new S3Error('NotImplemented', 'If-None-Match takes * only.');
  if (ifNoneMatch === '*' && stored !== undefined) throw failed('If-None-Match');
  if (ifMatch === undefined) return;
  if (stored === undefined) throw new S3Error('NoSuchKey', 'The specified key does not exist.');
  if (stored.etag !== ifMatch && stored.etag !== `"${ifMatch}"`) throw failed('If-Match');
}

function failed(condition: string): S3Error {
  return new S3Error('PreconditionFailed', `The condition ${condition} did not hold.`);
}

/**
 * Puts an object in the place of another on conditions; its files are deleted if they do not hold. Synchronous up to the
 * replacement, so of two writers on the same condition one succeeds.
 */
export async function replaceObject(
  bucket: StoredBucket,
  target: { key: string; conditions: Conditions },
  object: StoredObject,
): Promise<void> {
  const old = bucket.objects.get(target.key);
  try {
    checkConditions(bucket, target.key, target.conditions);
    bucket.objects.set(target.key, object);
  } catch (error) {
    await removeSegments(object.segments);
    throw error;
  }
  await removeSegments(old?.segments ?? []);
}

/** Deletes files. A reader that has one open reads on. */
export async function removeSegments(segments: readonly Segment[]): Promise<void> {
  for (const { path } of segments) await rm(path, { force: true });
}

/** Streams the bytes of an object from `start` to before `end`. */
export function readObject({ segments }: StoredObject, range: { start: number; end: number }): Readable {
  return Readable.from(readSegments(segments, range), { objectMode: false });
}

async function* readSegments(
  segments: readonly Segment[],
  { start, end }: { start: number; end: number },
): AsyncGenerator<Buffer> {
  let offset = 0;
  for (const { path, bytes } of segments) {
    const from = Math.max(0, start - offset);
    const to = Math.min(bytes, end - offset);
    // The end of a read stream is inclusive.
    if (from < to) yield* createReadStream(path, { start: from, end: to - 1 });
    offset += bytes;
  }
}
