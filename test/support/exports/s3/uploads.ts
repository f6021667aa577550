/** The operations of uploads in parts. */
import { createHash, randomUUID } from 'node:crypto';
import { receiveFile, receiveText } from './body.js';
import type { ChecksumName } from './checksums.js';
import { type Answer, type Call, readConditions, readDescription } from './objects.js';
import { S3Error, xmlDocument, xmlElements } from './s3-error.js';
import { checkConditions, type Part, removeSegments, replaceObject, type Upload } from './store.js';

const MAX_PARTS = 10_000;
const MAX_UPLOADS = 1000;

/** CreateMultipartUpload. */
export function createUpload({ bucketName, bucket, key, headers, now }: Call): Answer {
  const algorithm = headers['x-amz-checksum-algorithm'];
  const id = randomUUID();
  bucket.uploads.set(id, {
    ...readDescription(headers),
    id,
    key,
    initiated: new Date(now()),
    algorithm: typeof algorithm === 'string' ? (algorithm.toLowerCase() as ChecksumName) : undefined,
    parts: new Map(),
  });
  const members = xmlElements({ Bucket: bucketName, Key: key, UploadId: id });
  return { status: 200, body: xmlDocument('InitiateMultipartUploadResult', members) };
}

/** UploadPart; a part of the same number is replaced. */
export async function uploadPart(call: Call): Promise<Answer> {
  const upload = findUpload(call);
  const number = Number(call.query.get('partNumber'));
  if (!Number.isInteger(number) || number < 1 || number > MAX_PARTS)
    throw new S3Error('InvalidArgument', 'Part number must be an integer between 1 and 10000, inclusive');
  const part = await receiveFile(call, call.folder);
  if (upload.algorithm !== undefined && part.checksum?.name !== upload.algorithm) {
    await removeSegments([part]);
    throw new S3Error('InvalidRequest', `Checksum Type mismatch occurred, expected ${upload.algorithm}.`);
  }
  // It may have been aborted meanwhile.
  if (!call.bucket.uploads.has(upload.id)) {
    await removeSegments([part]);
    throw noSuchUpload();
  }
  const old = upload.parts.get(number);
  upload.parts.set(number, part);
  await removeSegments(old === undefined ? [] : [old]);
  return { status: 200, headers: { etag: `"${part.md5}"` } };
}

/** CompleteMultipartUpload, on the conditions If-Match and If-None-Match. */
export async function completeUpload(call: Call): Promise<Answer> {
  const { bucket, bucketName, key } = call;
  const conditions = readConditions(call.headers);
  const listed = parseParts(await receiveText(call));
  const upload = findUpload(call);
  const parts = listed.map((one) => findPart(upload, one));
  checkParts(listed, parts, call.minPartBytes);
  checkConditions(bucket, key, conditions);
  const digest = createHash('md5');
  for (const { md5 } of parts) digest.update(Buffer.from(md5, 'hex'));
  const etag = `"${digest.digest('hex')}-${parts.length}"`;
  bucket.uploads.delete(upload.id);
  const unused = [...upload.parts.values()].filter((part) => !parts.includes(part));
  const { contentType, metadata } = upload;
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const lastModified = new Date(call.now());
  const object = { contentType, metadata, segments: parts, bytes, etag, lastModified, checksum: undefined };
  await replaceObject(bucket, { key, conditions }, object);
  await removeSegments(unused);
  const members = xmlElements({ Bucket: bucketName, Key: key, ETag: etag });
  return { status: 200, body: xmlDocument('CompleteMultipartUploadResult', members) };
}

/** AbortMultipartUpload. */
export async function abortUpload(call: Call): Promise<Answer> {
  const upload = findUpload(call);
  call.bucket.uploads.delete(upload.id);
  await removeSegments([...upload.parts.values()]);
  return { status: 204 };
}

/** ListMultipartUploads, by prefix, the first page. */
export function listUploads({ bucketName, bucket, query }: Call): Answer {
  const prefix = query.get('prefix') ?? '';
  const max = Math.min(Number(query.get('max-uploads') ?? MAX_UPLOADS) || MAX_UPLOADS, MAX_UPLOADS);
  const found = [...bucket.uploads.values()].filter(({ key }) => key.startsWith(prefix));
  const uploads = found.slice(0, max).map(({ key, id, initiated }) => {
    const members = { Key: key, UploadId: id, Initiated: initiated.toISOString() };
    return `<Upload>${xmlElements(members)}</Upload>`;
  });
  const IsTruncated = String(found.length > max);
  const head = xmlElements({ Bucket: bucketName, Prefix: prefix, MaxUploads: max, IsTruncated });
  return { status: 200, body: xmlDocument('ListMultipartUploadsResult', head + uploads.join('')) };
}

type ListedPart = { number: number; etag: string; sha256: string | undefined };

function parseParts(document: string): ListedPart[] {
  const parts = [...document.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
    number: Number(findElement(part, 'PartNumber')),
    etag: (findElement(part, 'ETag') ?? '').replaceAll(/&quot;|"/g, ''),
    sha256: findElement(part, 'ChecksumSHA256'),
  }));
  if (parts.length > 0 && parts.length <= MAX_PARTS) return parts;
  throw new S3Error('MalformedXML', 'The XML you provided was not well-formed or did not validate.');
}

function findElement(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
}

function findPart({ parts, algorithm }: Upload, { number, etag, sha256 }: ListedPart): Part {
  const part = parts.get(number);
  if (part === undefined || part.md5 !== etag)
    throw new S3Error('InvalidPart', 'One or more of the specified parts could not be found.');
  if (algorithm === 'sha256' && part.checksum?.value !== sha256)
    throw new S3Error('InvalidPart', `The checksum of part ${number} is missing or differs.`);
  return part;
}

function checkParts(listed: readonly ListedPart[], parts: readonly Part[], minBytes: number): void {
  const isAscending = listed.every(
    ({ number }, index) => index === 0 || number > (listed[index - 1]?.number ?? 0),
  );
  if (!isAscending) throw new S3Error('InvalidPartOrder', 'The list of parts was not in ascending order.');
  if (parts.slice(0, -1).some(({ bytes }) => bytes < minBytes))
    throw new S3Error('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size.');
}

function findUpload({ bucket, key, query }: Call): Upload {
  const upload = bucket.uploads.get(query.get('uploadId') ?? '');
  if (upload?.key !== key) throw noSuchUpload();
  return upload;
}

function noSuchUpload(): S3Error {
  return new S3Error('NoSuchUpload', 'The specified upload does not exist.');
}
