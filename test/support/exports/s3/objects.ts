/** The operations on objects. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { type Incoming, receiveFile } from './body.js';
import { S3Error, xmlDocument, xmlElements } from './s3-error.js';
import {
  type Conditions,
  checkConditions,
  type Description,
  readObject,
  removeSegments,
  replaceObject,
  type StoredBucket,
  type StoredObject,
} from './store.js';

/** A request for a bucket, verified. */
export type Call = Incoming & {
  bucketName: string;
  bucket: StoredBucket;
  key: string;
  query: URLSearchParams;
  /** The folder for the bytes. */
  folder: string;
  now: () => number;
  minPartBytes: number;
};

export type Answer = { status: number; headers?: Record<string, string>; body?: string | Readable };

const MAX_METADATA_BYTES = 2048;
const MAX_KEYS = 1000;

/** PutObject, on the conditions If-Match and If-None-Match. */
export async function putObject(call: Call): Promise<Answer> {
  const { bucket, key, headers } = call;
  const conditions = readConditions(headers);
  checkConditions(bucket, key, conditions);
  const description = readDescription(headers);
  const { path, bytes, md5, checksum } = await receiveFile(call, call.folder);
  const etag = `"${md5}"`;
  const lastModified = new Date(call.now());
  const segments = [{ path, bytes }];
  await replaceObject(
    bucket,
    { key, conditions },
    { ...description, segments, bytes, etag, lastModified, checksum },
  );
  return { status: 200, headers: { etag } };
}

/** GetObject, with Range, or HeadObject. */
export function getObject({ bucket, key, headers }: Call, isHead: boolean): Answer {
  const object = bucket.objects.get(key);
  if (object === undefined) throw new S3Error('NoSuchKey', 'The specified key does not exist.');
  const range = readRange(headers.range, object.bytes);
  const { start, end } = range ?? { start: 0, end: object.bytes };
  const answer = {
    status: range === undefined ? 200 : 206,
    headers: {
      ...objectHeaders(object),
      'content-length': String(end - start),
      ...(range && { 'content-range': `bytes ${start}-${end - 1}/${object.bytes}` }),
      ...(headers['x-amz-checksum-mode'] === 'ENABLED' && range === undefined && checksumHeaders(object)),
    },
  };
  return isHead ? answer : { ...answer, body: readObject(object, { start, end }) };
}

/** DeleteObject, which succeeds for an object that is not there. */
export async function deleteObject({ bucket, key }: Call): Promise<Answer> {
  const object = bucket.objects.get(key);
  bucket.objects.delete(key);
  await removeSegments(object?.segments ?? []);
  return { status: 204 };
}

/** ListObjectsV2, by prefix, in pages. */
export function listObjects({ bucketName, bucket, query }: Call): Answer {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
  const maxKeys = Math.min(Number(query.get('max-keys') ?? MAX_KEYS) || MAX_KEYS, MAX_KEYS);
  const keys = [...bucket.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
  const page = keys.slice(0, maxKeys);
  const contents = page.map((key) => {
    const { etag, bytes, lastModified } = bucket.objects.get(key) as StoredObject;
    const members = { Key: key, LastModified: lastModified.toISOString(), ETag: etag, Size: bytes };
    return `<Contents>${xmlElements({ ...members, StorageClass: 'STANDARD' })}</Contents>`;
  });
  const isTruncated = keys.length > page.length;
  const head = xmlElements({
    Name: bucketName,
    Prefix: prefix,
    KeyCount: page.length,
    MaxKeys: maxKeys,
    IsTruncated: String(isTruncated),
    NextContinuationToken: isTruncated ? page.at(-1) : undefined,
  });
  return { status: 200, body: xmlDocument('ListBucketResult', head + contents.join('')) };
}

/** The conditions of a write. */
export function readConditions(headers: IncomingHttpHeaders): Conditions {
  return { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] };
}

/** Content type and metadata, as headers state them. */
export function readDescription(headers: IncomingHttpHeaders): Description {
  const prefix = 'x-amz-meta-';
  const entries = Object.entries(headers).filter(([name]) => name.startsWith(prefix));
  const metadata = Object.fromEntries(
    entries.map(([name, value]) => [name.slice(prefix.length), String(value)]),
  );
  if (Object.entries(metadata).flat().join('').length > MAX_METADATA_BYTES)
    throw new S3Error('MetadataTooLarge', 'Your metadata headers exceed the maximum allowed metadata size.');
  return { contentType: headers['content-type'] ?? 'binary/octet-stream', metadata };
}

function objectHeaders({ etag, contentType, metadata, lastModified }: StoredObject): Record<string, string> {
  const own = Object.entries(metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]);
  return {
    etag,
    'content-type': contentType,
    'accept-ranges': 'bytes',
    'last-modified': lastModified.toUTCString(),
    ...Object.fromEntries(own),
  };
}

function checksumHeaders({ checksum }: StoredObject): Record<string, string> {
  return checksum === undefined ? {} : { [`x-amz-checksum-${checksum.name}`]: checksum.value };
}

function readRange(header: string | undefined, bytes: number): { start: number; end: number } | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (start >= end) throw new S3Error('InvalidRange', 'The requested range is not satisfiable.');
  return { start, end };
}
