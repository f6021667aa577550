/** The objects of the server's buckets, and uploads to them, by the rules of the JSON API. */
import { createHash, type Hash } from 'node:crypto';
import { CRC32C } from '@google-cloud/storage';
import { failed, type GcsAnswer, json, type MediaAnswer } from './answer.js';

/** Larger contents are hashed, but not kept. */
const MAX_KEPT_BYTES = 1024 * 1024;

export type GcsObject = {
  name: string;
  generation: string;
  size: number;
  contentType: string;
  md5Hash: string;
  crc32c: string;
  metadata: Record<string, string>;
  /** Undefined if it is too large. */
  content: Buffer | undefined;
};

export type GcsBucket = {
  objects: Map<string, GcsObject>;
  /** What each account may do. */
  grants: Map<string, Set<'get' | 'create' | 'delete'>>;
  /** Objects cannot be replaced. */
  isRetained: boolean;
};

/** A resumable upload. */
export type Upload = {
  bucket: string;
  name: string;
  ifGenerationMatch: string | null;
  contentType: string;
  resource: { metadata?: Record<string, string>; md5Hash?: string; crc32c?: string };
  received: number;
  md5: Hash;
  crc32c: CRC32C;
  kept: Buffer[];
};

/** Begins an upload. */
export function beginUpload(
  wanted: Pick<Upload, 'bucket' | 'name' | 'ifGenerationMatch' | 'contentType' | 'resource'>,
): Upload {
  return { ...wanted, received: 0, md5: createHash('md5'), crc32c: new CRC32C(), kept: [] };
}

/** Takes bytes of an upload. */
export function receive(upload: Upload, bytes: Buffer): void {
  upload.received += bytes.length;
  upload.md5.update(bytes);
  upload.crc32c.update(bytes);
  if (upload.received <= MAX_KEPT_BYTES) upload.kept.push(bytes);
}

/** Why an account may not upload: its grants, the bucket's retention, or the condition. */
export function findUploadProblem(
  bucket: GcsBucket,
  account: string,
  { name, ifGenerationMatch }: Pick<Upload, 'name' | 'ifGenerationMatch'>,
): GcsAnswer | undefined {
  const existing = bucket.objects.get(name);
  if (!bucket.grants.get(account)?.has('create')) return denied(account, 'create');
  if (ifGenerationMatch !== null && ifGenerationMatch !== (existing?.generation ?? '0'))
    return failed(412, 'conditionNotMet', 'At least one of the pre-conditions you specified did not hold.');
  if (existing === undefined) return undefined;
  if (!bucket.grants.get(account)?.has('delete')) return denied(account, 'delete');
  if (!bucket.isRetained) return undefined;
  const subject = `Object '${name}' is subject to bucket's retention policy or object retention`;
  return failed(
    403,
    'retentionPolicyNotMet',
    `${subject} and cannot be deleted or overwritten until 2030-01-01.`,
  );
}

/** The answer to an account that lacks a permission. */
export function denied(account: string, permission: string): GcsAnswer {
  const text = `${account} does not have storage.objects.${permission} access to the Google Cloud Storage object.`;
  return failed(403, 'forbidden', text);
}

/** Makes an upload the object, if its checksums are those of the client. */
export function finishUpload(bucket: GcsBucket, upload: Upload, generation: string): GcsAnswer {
  const md5Hash = upload.md5.digest('base64');
  const crc32c = upload.crc32c.toString();
  const { metadata = {}, ...expected } = upload.resource;
  const isDamaged = [
    [expected.md5Hash, md5Hash],
    [expected.crc32c, crc32c],
  ].some(([wanted, got]) => wanted !== undefined && wanted !== got);
  if (isDamaged)
    return failed(
      400,
      'invalid',
      `Provided MD5 hash "${expected.md5Hash}" doesn't match calculated MD5 hash "${md5Hash}".`,
    );
  const { name, contentType, received: size, kept } = upload;
  const content = size <= MAX_KEPT_BYTES ? Buffer.concat(kept) : undefined;
  const object = { name, generation, size, contentType, md5Hash, crc32c, metadata, content };
  bucket.objects.set(name, object);
  return json(200, resourceOf(object));
}

/** An object's bytes. */
export function mediaOf({ content, contentType, generation }: GcsObject): MediaAnswer {
  if (content === undefined) return failed(500, 'backendError', 'This server has not kept the bytes.');
  return {
    status: 200,
    headers: { 'content-type': contentType, 'x-goog-generation': generation },
    body: content,
  };
}

/** An object's resource in answers. */
export function resourceOf({ content: _, size, ...object }: GcsObject): Record<string, unknown> {
  return { kind: 'storage#object', size: String(size), ...object };
}
