import { toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Detail, RpcStatus } from './connect-error.js';
import { envelope } from './messages.js';

const TRAILER_FLAG = 0x80;
const OK = { 'grpc-status': '0' };
const DETAILS = 'grpc-status-details-bin';

/**
 * The trailers of gRPC, of a failed call or of one that did not fail. `grpc-message` is encoded as every client decodes
 * it: Connect's library escapes ASCII punctuation, which @grpc/grpc-js, which reads it by decodeURI, leaves escaped.
 */
export function grpcTrailers(status: RpcStatus | undefined): Readonly<Record<string, string>> {
  if (status === undefined) return OK;
  const { code, message, metadata } = status;
  const trailers: Record<string, string> = {
    ...metadata,
    'grpc-status': String(code),
    'grpc-message': encodeURI(message),
  };
  const bytes = encodeStatus(status);
  if (bytes !== undefined) trailers[DETAILS] = toUnpaddedBase64(bytes);
  return trailers;
}

/** The same as the last frame of a body, on gRPC-Web. */
export function webTrailers(status: RpcStatus | undefined): Buffer {
  const lines = Object.entries(grpcTrailers(status)).map(([name, value]) => `${name}: ${value}\r\n`);
  return envelope(TRAILER_FLAG, Buffer.from(lines.join('')));
}

function encodeStatus({ code, message, details }: RpcStatus): Buffer | undefined {
  if (details.length === 0) return undefined;
  const writer = new BinaryWriter().tag(1, WireType.Varint).int32(code);
  writer.tag(2, WireType.LengthDelimited).string(message);
  for (const detail of details) writer.tag(3, WireType.LengthDelimited).bytes(anyBytes(detail));
  return Buffer.from(writer.finish());
}

function toUnpaddedBase64(bytes: Buffer): string {
  const text = bytes.toString('base64');
  return text.slice(0, Math.ceil((bytes.length * 4) / 3));
}

/** A google.protobuf.Any. */
function anyBytes({ desc, message }: Detail): Uint8Array {
  return new BinaryWriter()
    .tag(1, WireType.LengthDelimited)
    .string(`type.googleapis.com/${desc.typeName}`)
    .tag(2, WireType.LengthDelimited)
    .bytes(toBinary(desc, message))
    .finish();
}
