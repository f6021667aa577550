const HEAD_BYTES = 5;

/** A length-prefixed message of gRPC: flags, length in 4 bytes, message. */
export function envelope(flags: number, message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  bytes.writeUInt8(flags, 0);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, HEAD_BYTES);
  return bytes;
}
