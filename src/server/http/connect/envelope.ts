/** Flags, and the length in 4 bytes. */
export const HEAD_BYTES = 5;
/** Flag of a compressed message. */
export const COMPRESSED_FLAG = 1;

/** A length-prefixed message, as gRPC, gRPC-Web and streams of Connect have it. */
export function envelope(flags: number, message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  bytes.writeUInt8(flags, 0);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, HEAD_BYTES);
  return bytes;
}
