import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonReadOptions,
  type JsonWriteOptions,
  type Message,
} from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import { compressedFlag } from '@connectrpc/connect/protocol';
import type { Call } from '../../core/call.js';
import type { Bound } from '../../json/bound.js';
import { readJson } from '../../json/strict-json.js';
import type { ReadItems } from '../call/batch-items.js';
import { bodyLength, type HoldBytes, readStream, tooLarge } from '../socket/bodies.js';
import type { NodeRequest, Protocol } from '../socket/requests.js';
import { protocolError, unreadable } from './errors.js';

/** How the messages of a call are encoded. */
export type MessageFormat = {
  readonly protocol: Protocol;
  readonly isJson: boolean;
  /** Whether flags and length precede a message. */
  readonly isEnveloped: boolean;
  /** Of a response. */
  readonly contentType: string;
  /** The header that names a message's compression, and the one that lists the accepted ones. */
  readonly encodingHeader: 'content-encoding' | 'grpc-encoding';
  readonly acceptHeader: 'accept-encoding' | 'grpc-accept-encoding';
};

type Formats = ReadonlyMap<string, MessageFormat>;

const GRPC_FORMATS = (['grpc', 'grpc-web'] as const).flatMap((protocol) => [
  [`application/${protocol}`, enveloped(protocol, 'proto')] as const,
  [`application/${protocol}+proto`, enveloped(protocol, 'proto')] as const,
  [`application/${protocol}+json`, enveloped(protocol, 'json')] as const,
]);

const UNARY: Formats = new Map([
  ['application/json', plain('json')],
  ['application/proto', plain('proto')],
  ...GRPC_FORMATS,
]);

const JSON_IN_UTF8 = /^([^;]*json) *; *charset="?utf-?8"?$/;

function plain(codec: 'json' | 'proto'): MessageFormat {
  return {
    protocol: 'connect',
    isJson: codec === 'json',
    isEnveloped: false,
    contentType: `application/${codec}`,
    encodingHeader: 'content-encoding',
    acceptHeader: 'accept-encoding',
  };
}

function enveloped(protocol: 'grpc' | 'grpc-web', codec: 'json' | 'proto'): MessageFormat {
  return {
    protocol,
    isJson: codec === 'json',
    isEnveloped: true,
    contentType: `application/${protocol}+${codec}`,
    encodingHeader: 'grpc-encoding',
    acceptHeader: 'grpc-accept-encoding',
  };
}

/** The format of a unary call, by its content type. Undefined for one that no unary call has. */
export function findFormat(contentType: string | undefined): MessageFormat | undefined {
  if (contentType === undefined) return undefined;
  const usual = UNARY.get(contentType);
  if (usual !== undefined) return usual;
  const type = contentType.toLowerCase();
  return UNARY.get(JSON_IN_UTF8.exec(type)?.[1] ?? type);
}

/** The protocol that a content type stands for, of unary calls or not. */
export function protocolOf(contentType: string | null | undefined): Protocol {
  if (contentType?.startsWith('application/grpc-web')) return 'grpc-web';
  return contentType?.startsWith('application/grpc') ? 'grpc' : 'connect';
}

/** Flags, and the length in 4 bytes. */
const HEAD_BYTES = 5;
/** Bounds of a message. */
export type MessageRules = {
  desc: DescMessage;
  bound: Bound;
  /** Throws if the Structs of a binary message have more than `max` values, or one without a kind. */
  checkValues: ((bytes: Uint8Array, max: number) => void) | undefined;
  /** Reads the items of a batch; undefined for other methods. */
  readItems: ReadItems | undefined;
  jsonOptions: JsonOptions;
};

/** How ProtoJSON is read and written. */
export type JsonOptions = Partial<JsonReadOptions & JsonWriteOptions>;

/** A message as it was sent, and whether it was compressed. That of a batch is empty: its items are read one by one. */
type ReceivedMessage = { message: Message; isGzip: boolean; nextItem?: Call['nextItem'] };

const inflate = promisify(gunzip);

const MAX_PROBLEM_CHARACTERS = 500;
/** The error of a unary call with none or several messages is in gRPC's statuscodes.md. */
const NOT_ONE = 'it is not one message and its length';

/**
 * Reads the message of an admitted call, decompresses and parses it, within the bound of its RPC. Throws
 * `request.invalid`, `request.malformed_json`, `request.too_large`, `request.unsupported_media_type`, ClientGone.
 */
export async function readBodyMessage(
  req: NodeRequest,
  format: MessageFormat,
  rules: MessageRules,
  hold: HoldBytes,
): Promise<ReceivedMessage> {
  const { maxBytes } = rules.bound;
  const isGzip = readEncoding(req.headers[format.encodingHeader] as string | undefined, format);
  const maxBodyBytes = maxBytes + (format.isEnveloped ? HEAD_BYTES : 0);
  if ((bodyLength(req) ?? 0) > maxBodyBytes) throw tooLarge(maxBytes);
  const body = await readStream(req, maxBodyBytes, () => tooLarge(maxBytes), hold);
  const { bytes, isCompressed } = format.isEnveloped
    ? openEnvelope(body, maxBytes)
    : { bytes: body, isCompressed: isGzip };
  if (isCompressed && !isGzip) {
    throw protocolError('the message is compressed, but its compression is not named', Code.Internal);
  }
  const plain = isCompressed ? await inflateWithin(bytes, maxBytes) : bytes;
  if (isCompressed) hold(plain.length);
  if (rules.readItems === undefined) return { message: parseMessage(plain, format, rules), isGzip };
  const nextItem = rules.readItems(plain, format.isJson ? 'json' : 'binary');
  return { message: create(rules.desc), isGzip, nextItem };
}

/** Whether it is gzip. Throws the error of gRPC's compression.md for another compression. */
function readEncoding(encoding: string | undefined, { acceptHeader }: MessageFormat): boolean {
  if (encoding === undefined || encoding === '' || encoding === 'identity') return false;
  if (encoding === 'gzip') return true;
  const message = 'the message may be compressed by gzip only';
  throw protocolError(message, Code.Unimplemented, { [acceptHeader]: 'gzip' });
}

/** The one message in a body. */
function openEnvelope(body: Uint8Array, maxBytes: number): { bytes: Uint8Array; isCompressed: boolean } {
  const bytes = body.subarray(HEAD_BYTES);
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const length = body.length < HEAD_BYTES ? undefined : view.getUint32(1);
  if (length !== undefined && length > maxBytes) throw tooLarge(maxBytes);
  if (body.length === 0 || (length !== undefined && length < bytes.length)) {
    throw protocolError(NOT_ONE, Code.Unimplemented);
  }
  if (length !== bytes.length) throw unreadable(NOT_ONE);
  return { bytes, isCompressed: (view.getUint8(0) & compressedFlag) !== 0 };
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

/** Parses a message. Throws `request.invalid` and `request.malformed_json`. */
function parseMessage(bytes: Uint8Array, { isJson }: MessageFormat, rules: MessageRules): Message {
  const { desc, bound, checkValues } = rules;
  if (isJson) {
    const json = readJson(bytes, bound.maxValues);
    return parsed(() => fromJson(desc, json, rules.jsonOptions), '');
  }
  checkValues?.(bytes, bound.maxValues);
  return parsed(() => fromBinary(desc, bytes), 'parse binary: ');
}

function parsed(read: () => Message, context: string): Message {
  try {
    return read();
  } catch (error) {
    throw unreadable(`${context}${(error as Error).message}`.slice(0, MAX_PROBLEM_CHARACTERS));
  }
}
