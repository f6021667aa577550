/** Uploads an object with one request, on a condition. */
import { revisionMetadata } from '../compare-and-swap.js';
import type { ExportObject } from '../object-store.js';
import { type Bucket, send } from './bucket.js';

/** The condition that the object is unchanged since it was read. */
export type Condition = { IfMatch: string } | { IfNoneMatch: '*' };

/** The condition and the signal of an upload. */
export type Upload = { condition: Condition; signal: AbortSignal };

/** The metadata of an object that is not yet whole. */
export type Described = Pick<ExportObject, 'name' | 'contentType' | 'cacheControl' | 'revision'> &
  Partial<Pick<ExportObject, 'sha256'>>;

/** The key and metadata of an object; without the SHA-256 of a streamed object, which is not yet known. */
export function describeObject({ name }: Bucket, object: Described) {
  const { revision, sha256 } = object;
  return {
    Bucket: name,
    Key: object.name,
    ContentType: object.contentType,
    CacheControl: object.cacheControl,
    Metadata: sha256 === undefined ? { revision: String(revision) } : revisionMetadata({ revision, sha256 }),
  };
}

/** Streams an object into the bucket. Rejects with the SDK's error, also if the condition does not hold. */
export async function putObject(
  bucket: Bucket,
  object: ExportObject,
  { condition, signal }: Upload,
): Promise<void> {
  const body = object.read();
  const command = new bucket.sdk.PutObjectCommand({
    ...describeObject(bucket, object),
    Body: body,
    ContentLength: object.bytes,
    ChecksumSHA256: Buffer.from(object.sha256).toString('base64'),
    ...condition,
  });
  const operation = { action: 's3:PutObject', resource: `${bucket.name}/${object.name}` };
  await send(bucket, { operation, signal, body }, (abortSignal) =>
    bucket.client.send(command, { abortSignal }),
  );
}
