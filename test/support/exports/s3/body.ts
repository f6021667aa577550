/** Receives the body of a signed request: into a file or into memory, with every checksum verified. */
import { createHash, randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { decodeAwsChunked } from './aws-chunked.js';
import { CHECKSUMS, type ChecksumName, startChecksum } from './checksums.js';
import { S3Error } from './s3-error.js';

const TRAILER_BODY = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';
/** More than a list of 10,000 parts. */
const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;
const MAX_OBJECT_BYTES = 5 * 1024 ** 3;

/** A body as it comes, and what its request states of it. */
export type Incoming = {
  headers: IncomingHttpHeaders;
  source: AsyncIterable<Buffer>;
  /** Whether it came by https, where a body need not be signed. */
  isSecure: boolean;
};

/** A file that a body was written to. */
export type ReceivedFile = {
  path: string;
  bytes: number;
  md5: string;
  /** The checksum that the client stated, in base64. */
  checksum: { name: ChecksumName; value: string } | undefined;
};

/** The hash of the body that the signature covers. */
export function statedPayloadHash({ headers, isSecure }: Pick<Incoming, 'headers' | 'isSecure'>): string {
  const stated = headers['x-amz-content-sha256'];
  if (typeof stated !== 'string') throw new S3Error('InvalidRequest', 'Missing x-amz-content-sha256.');
  if (/^[0-9a-f]{64}$/.test(stated) || stated === TRAILER_BODY) return stated;
  if (stated !== 'UNSIGNED-PAYLOAD') throw new S3Error('NotImplemented', `${stated} is not implemented.`);
  if (!isSecure) throw new S3Error('InvalidRequest', 'An unsigned payload needs https.');
  return stated;
}

/** Writes a body to a new file of a folder; a body that is refused leaves none. */
export async function receiveFile(incoming: Incoming, folder: string): Promise<ReceivedFile> {
  const path = join(folder, randomUUID());
  const file = await open(path, 'wx');
  try {
    const result = await receive(incoming, async (chunk) => void (await file.write(chunk)), MAX_OBJECT_BYTES);
    return { path, ...result };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Reads a body of at most 2 MiB as text. */
export async function receiveText(incoming: Incoming): Promise<string> {
  const chunks: Buffer[] = [];
  await receive(incoming, async (chunk) => void chunks.push(chunk), MAX_DOCUMENT_BYTES);
  return Buffer.concat(chunks).toString();
}

async function receive(
  incoming: Incoming,
  write: (chunk: Buffer) => Promise<void>,
  maxBytes: number,
): Promise<Omit<ReceivedFile, 'path'>> {
  const { headers, source } = incoming;
  const isChunked = headers['x-amz-content-sha256'] === TRAILER_BODY;
  const length = readLength(headers[isChunked ? 'x-amz-decoded-content-length' : 'content-length']);
  if (length > maxBytes)
    throw new S3Error('EntityTooLarge', 'Your proposed upload exceeds the maximum size.');
  const name = findChecksumName(headers);
  const trailers = new Map<string, string>();
  const md5 = createHash('md5');
  const names = new Set<ChecksumName>([...(isChunked ? [] : (['sha256'] as const)), ...(name ? [name] : [])]);
  const running = [...names].map((algorithm) => [algorithm, startChecksum(algorithm)] as const);
  let bytes = 0;
  for await (const chunk of isChunked ? decodeAwsChunked(source, trailers) : source) {
    bytes += chunk.length;
    if (bytes > length) break;
    md5.update(chunk);
    for (const [, checksum] of running) checksum.update(chunk);
    await write(chunk);
  }
  if (bytes !== length) throw new S3Error('IncompleteBody', 'The body is not as long as stated.');
  const digests = new Map(running.map(([algorithm, checksum]) => [algorithm, checksum.digest()]));
  checkPayloadHash(headers, digests.get('sha256'));
  const value = name && digests.get(name);
  if (name !== undefined) checkChecksum(headers, trailers, { name, value });
  return {
    bytes,
    md5: md5.digest('hex'),
    checksum: name === undefined || value === undefined ? undefined : { name, value },
  };
}

function readLength(header: string | string[] | undefined): number {
  if (typeof header !== 'string' || !/^\d{1,15}$/.test(header))
    throw new S3Error('MissingContentLength', 'You must provide the Content-Length HTTP header.');
  return Number(header);
}

/** The algorithm that the client states a checksum of, in a header or, later, in the trailer. */
function findChecksumName(headers: IncomingHttpHeaders): ChecksumName | undefined {
  return CHECKSUMS.find(
    (name) =>
      headers[`x-amz-checksum-${name}`] !== undefined ||
      headers['x-amz-trailer'] === `x-amz-checksum-${name}`,
  );
}

function checkPayloadHash(headers: IncomingHttpHeaders, sha256: string | undefined): void {
  const stated = String(headers['x-amz-content-sha256']);
  if (!/^[0-9a-f]{64}$/.test(stated)) return;
  if (sha256 !== Buffer.from(stated, 'hex').toString('base64'))
    throw new S3Error('XAmzContentSHA256Mismatch', "The provided 'x-amz-content-sha256' does not match.");
}

function checkChecksum(
  headers: IncomingHttpHeaders,
  trailers: ReadonlyMap<string, string>,
  { name, value }: { name: ChecksumName; value: string | undefined },
): void {
  const header = `x-amz-checksum-${name}`;
  if ((headers[header] ?? trailers.get(header)) !== value)
    throw new S3Error('BadDigest', `The ${name} you specified did not match the calculated checksum.`);
}
