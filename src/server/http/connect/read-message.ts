import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { base64Decode, base64Encode } from '@bufbuild/protobuf/wire';
import { parseContentType as parseConnect } from '@connectrpc/connect/protocol-connect';
import { parseContentType as parseGrpc } from '@connectrpc/connect/protocol-grpc';
import { parseContentType as parseGrpcWeb } from '@connectrpc/connect/protocol-grpc-web';
import type { Call } from '../../core/call.js';
import type { Bound } from '../../json/bound.js';
import { invalidRequest } from '../../json/problems.js';
import { readJson, tooManyValues } from '../../json/strict-json.js';
import type { ReadItems } from '../call/batch-items.js';
import { bodyLength, type HoldBytes, readStream, tooLarge, unsupported } from '../socket/read-body.js';
import { type NodeRequest, type Protocol, pathOf } from '../socket/requests.js';

/** Bounds of a message. */
export type MessageRules = {
  bound: Bound;
  /** Whether the Structs of a binary message have more than `max` values. Undefined if the type has no Struct. */
  hasMoreValues: ((bytes: Uint8Array, max: number) => boolean) | undefined;
  /** Reads the items of a batch; undefined for other methods. */
  readItems: ReadItems | undefined;
};

const inflate = promisify(gunzip);

const ENVELOPE_HEAD_BYTES = 5;
const COMPRESSED_FLAG = 1;

/**
 * Reads the message of an admitted call and decompresses it, within the bound of its RPC.
 *
 * @param call gets the items of a batch
 * @returns the uncompressed body for Connect to parse; undefined if the message is in the query, or if Connect rejects
 * the content type
 */
export async function readMessage(
  req: NodeRequest,
  rules: MessageRules,
  hold: HoldBytes,
  call: Pick<Call, 'nextItem'>,
): Promise<Uint8Array | undefined> {
  if (req.method === 'GET') return readQuery(req, rules);
  const form = findFormat(req.headers['content-type']);
  if (form === undefined) return undefined;
  const { maxBytes } = rules.bound;
  const isGzip = readEncoding(req.headers[form.encodingHeader] as string | undefined, form);
  const maxBodyBytes = maxBytes + (form.isEnveloped ? ENVELOPE_HEAD_BYTES : 0);
  if ((bodyLength(req) ?? 0) > maxBodyBytes) throw tooLarge(maxBytes);
  const body = await readStream(req, maxBodyBytes, () => tooLarge(maxBytes), hold);
  const { bytes, isCompressed } = form.isEnveloped
    ? openEnvelope(body, maxBytes)
    : { bytes: body, isCompressed: isGzip };
  if (isCompressed && !isGzip) throw unreadable('its compression is not named');
  const message = isCompressed ? await inflateWithin(bytes, maxBytes) : bytes;
  if (isCompressed) hold(message.length);
  const parsed = takeItems(message, form, rules, call);
  return form.isEnveloped ? closeEnvelope(parsed) : parsed;
}

const NO_ITEMS = { json: Buffer.from('{}'), binary: new Uint8Array() };

/** The part of a message that Connect is to parse: of a batch none, because its items are read one by one. */
function takeItems(
  message: Uint8Array,
  form: MessageFormat,
  rules: MessageRules,
  call: Pick<Call, 'nextItem'>,
): Uint8Array {
  if (rules.readItems === undefined) {
    assertFewValues(message, form, rules);
    return message;
  }
  const encoding = form.isJson ? 'json' : 'binary';
  call.nextItem = rules.readItems(message, encoding);
  return NO_ITEMS[encoding];
}

/** Reads the message of a GET, whose length is bounded by that of the headers. */
async function readQuery(req: NodeRequest, rules: MessageRules): Promise<undefined> {
  const { searchParams } = new URL(req.url ?? '', 'http://localhost');
  const form = findQueryFormat(searchParams.get('encoding'));
  if (form === undefined) return undefined;
  const text = searchParams.get('message') ?? '';
  const isGzip = readEncoding(searchParams.get('compression') ?? undefined, form);
  const bytes = searchParams.get('base64') === '1' ? decode(text) : Buffer.from(text);
  const message = isGzip ? await inflateWithin(bytes, rules.bound.maxBytes) : bytes;
  assertFewValues(message, form, rules);
  if (!isGzip) return undefined;
  searchParams.delete('compression');
  searchParams.set('base64', '1');
  searchParams.set('message', base64Encode(message, 'url'));
  req.url = `${pathOf(req)}?${searchParams}`;
  return undefined;
}

/** Whether it is gzip. Throws `request.unsupported_media_type` for another compression. */
function readEncoding(encoding: string | undefined, { acceptHeader }: MessageFormat): boolean {
  if (encoding === undefined || encoding === '' || encoding === 'identity') return false;
  if (encoding !== 'gzip')
    throw unsupported('the message may be compressed by gzip only', { [acceptHeader]: 'gzip' });
  return true;
}

/** The one message in a body. */
function openEnvelope(body: Uint8Array, maxBytes: number): { bytes: Uint8Array; isCompressed: boolean } {
  const bytes = body.subarray(ENVELOPE_HEAD_BYTES);
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const length = body.length < ENVELOPE_HEAD_BYTES ? undefined : view.getUint32(1);
  if (length !== undefined && length > maxBytes) throw tooLarge(maxBytes);
  if (length !== bytes.length) {
    throw unreadable('it is not one message and its length');
  }
  return { bytes, isCompressed: (view.getUint8(0) & COMPRESSED_FLAG) !== 0 };
}

function closeEnvelope(message: Uint8Array): Uint8Array {
  const body = new Uint8Array(ENVELOPE_HEAD_BYTES + message.length);
  new DataView(body.buffer).setUint32(1, message.length);
  body.set(message, ENVELOPE_HEAD_BYTES);
  return body;
}

/** Decompresses; throws `request.too_large` as soon as there are more than `maxBytes`. */
async function inflateWithin(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  try {
    return await inflate(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? tooLarge(maxBytes)
      : unreadable('decompression failed');
  }
}

function assertFewValues(
  message: Uint8Array,
  { isJson }: MessageFormat,
  { bound, hasMoreValues }: MessageRules,
): void {
  if (isJson) readJson(message, bound.maxValues);
  else if (hasMoreValues?.(message, bound.maxValues)) throw tooManyValues(bound.maxValues);
}

function decode(text: string): Uint8Array {
  try {
    return base64Decode(text);
  } catch {
    throw unreadable('the message is not base64');
  }
}

function unreadable(reason: string): Error {
  return invalidRequest([{ path: '', message: `cannot be read: ${reason}` }]);
}

/** How the message of a unary call is encoded in its body. */
type MessageFormat = {
  isJson: boolean;
  /** Whether flags and length precede it. */
  isEnveloped: boolean;
  /** The request header that names its compression, and the response header that lists the accepted ones. */
  encodingHeader: 'content-encoding' | 'grpc-encoding';
  acceptHeader: 'accept-encoding' | 'grpc-accept-encoding';
};

const PLAIN = {
  isEnveloped: false,
  encodingHeader: 'content-encoding',
  acceptHeader: 'accept-encoding',
} as const;
const ENVELOPED = {
  isEnveloped: true,
  encodingHeader: 'grpc-encoding',
  acceptHeader: 'grpc-accept-encoding',
} as const;

/** The protocol that a content type stands for. */
export function protocolOf(contentType: string | null | undefined): Protocol {
  if (contentType?.startsWith('application/grpc-web')) return 'grpc-web';
  return contentType?.startsWith('application/grpc') ? 'grpc' : 'connect';
}

/** The format of a content type. Undefined for one that no unary call has. */
function findFormat(contentType: string | undefined): MessageFormat | undefined {
  const type = contentType ?? null;
  const connect = parseConnect(type);
  if (connect !== undefined) return connect.stream ? undefined : { ...PLAIN, isJson: !connect.binary };
  const grpc = parseGrpc(type) ?? parseGrpcWeb(type);
  return grpc && { ...ENVELOPED, isJson: !grpc.binary };
}

/** The format of the message in the query of a GET. Undefined for an unknown encoding. */
function findQueryFormat(encoding: string | null): MessageFormat | undefined {
  if (encoding !== 'json' && encoding !== 'proto') return undefined;
  return { ...PLAIN, isJson: encoding === 'json' };
}
