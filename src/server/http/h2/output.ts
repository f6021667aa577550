import type { Socket } from 'node:net';
import { HpackEncoder, type SentFields } from './hpack-encoder.js';
import { DEFAULT_MAX_FRAME_SIZE, Flag, FRAME_HEADER_BYTES, FrameType } from './protocol.js';

/** Smaller payloads are copied beside the frames around them, so that they leave in one piece. */
const COPIED_BYTES = 2_048;
const FIRST_PIECE = 2_048;
const MAX_PIECE = 16_384;

/** The frames that a connection sends. They gather until `flush`, which hands them to the socket in one write. */
export class Output {
  readonly encoder = new HpackEncoder();
  /** Of all frames that wait for `flush`. */
  bytes = 0;
  #parts: Uint8Array[] = [];
  #piece: Buffer | undefined;
  #start = 0;
  #at = 0;

  /** HEADERS, with CONTINUATION where a frame is too small (RFC 9113, section 6.10). */
  headers(streamId: number, fields: SentFields, isEnd: boolean): void {
    const from = this.#reserve(FRAME_HEADER_BYTES + HpackEncoder.maxBytes(fields));
    const piece = this.#piece as Buffer;
    const start = from + FRAME_HEADER_BYTES;
    const end = this.encoder.encode(fields, piece, start);
    const endStream = isEnd ? Flag.END_STREAM : 0;
    if (end - start <= DEFAULT_MAX_FRAME_SIZE) {
      writeHead(piece, from, end - start, FrameType.HEADERS, endStream | Flag.END_HEADERS, streamId);
      this.#advance(end - from);
      return;
    }
    const block = Buffer.from(piece.subarray(start, end));
    for (let at = 0; at < block.length; at += DEFAULT_MAX_FRAME_SIZE) {
      const part = block.subarray(at, at + DEFAULT_MAX_FRAME_SIZE);
      const isLast = at + part.length === block.length;
      const type = at === 0 ? FrameType.HEADERS : FrameType.CONTINUATION;
      this.frame(type, (at === 0 ? endStream : 0) | (isLast ? Flag.END_HEADERS : 0), streamId, part);
    }
  }

  /** Any frame. A large payload is not copied and must not change. */
  frame(type: number, flags: number, streamId: number, payload?: Uint8Array): void {
    const length = payload === undefined ? 0 : payload.length;
    const isCopied = length <= COPIED_BYTES;
    const from = this.#reserve(FRAME_HEADER_BYTES + (isCopied ? length : 0));
    const piece = this.#piece as Buffer;
    writeHead(piece, from, length, type, flags, streamId);
    if (isCopied && payload !== undefined) piece.set(payload, from + FRAME_HEADER_BYTES);
    this.#advance(FRAME_HEADER_BYTES + (isCopied ? length : 0));
    if (isCopied || payload === undefined) return;
    this.#seal();
    this.#parts.push(payload);
    this.bytes += length;
  }

  /** A frame whose payload is one integer of 32 bits. */
  integer(type: number, streamId: number, value: number): void {
    const from = this.#reserve(FRAME_HEADER_BYTES + 4);
    const piece = this.#piece as Buffer;
    writeHead(piece, from, 4, type, 0, streamId);
    piece.writeUInt32BE(value, from + FRAME_HEADER_BYTES);
    this.#advance(FRAME_HEADER_BYTES + 4);
  }

  /** Writes all to the socket. Returns false if it takes no more until it emits `drain`. */
  flush(socket: Socket): boolean {
    this.#seal();
    const parts = this.#parts;
    this.#piece = undefined;
    this.#start = 0;
    this.#at = 0;
    this.bytes = 0;
    if (parts.length === 0) return true;
    this.#parts = [];
    if (parts.length === 1) return socket.write(parts[0] as Uint8Array);
    socket.cork();
    for (const part of parts) socket.write(part);
    socket.uncork();
    return !socket.writableNeedDrain;
  }

  /** Makes room for `bytes` in one piece. Returns where. */
  #reserve(bytes: number): number {
    if (this.#piece === undefined || this.#piece.length - this.#at < bytes) {
      this.#seal();
      const usual = this.#parts.length === 0 ? FIRST_PIECE : MAX_PIECE;
      this.#piece = Buffer.allocUnsafe(Math.max(bytes, usual));
      this.#start = 0;
      this.#at = 0;
    }
    return this.#at;
  }

  #advance(bytes: number): void {
    this.#at += bytes;
    this.bytes += bytes;
  }

  #seal(): void {
    if (this.#piece === undefined || this.#at === this.#start) return;
    this.#parts.push(this.#piece.subarray(this.#start, this.#at));
    this.#start = this.#at;
  }
}

/** RFC 9113, section 4.1. */
function writeHead(
  out: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  out[at] = length >>> 16;
  out[at + 1] = length >>> 8;
  out[at + 2] = length;
  out[at + 3] = type;
  out[at + 4] = flags;
  out.writeUInt32BE(streamId, at + 5);
}
