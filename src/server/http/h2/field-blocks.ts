import type { Frame } from './frame-reader.js';
import {
  ConnectionError,
  Flag,
  frameSizeError,
  Http2Code,
  MAX_WINDOW_SIZE,
  protocolError,
} from './protocol.js';

/** A whole field block: `bytes` from `start` to `end`. */
export type FieldBlock = { streamId: number; isEnd: boolean; bytes: Buffer; start: number; end: number };

/** One of which CONTINUATION is still to come. */
type Unfinished = { streamId: number; isEnd: boolean; parts: Buffer[]; bytes: number };

/** Of one field block, compressed. */
const MAX_BLOCK_BYTES = 65_536;
const MAX_CONTINUATIONS = 16;
const PRIORITY_BYTES = 5;

/** Puts field blocks together (RFC 9113, section 4.3). Throws ConnectionErrors. */
export class FieldBlocks {
  #unfinished: Unfinished | undefined;

  /** Whether only CONTINUATION may come now. */
  get isInterrupted(): boolean {
    return this.#unfinished !== undefined;
  }

  /** Takes HEADERS. Returns the block if it is whole. */
  begin(frame: Frame): FieldBlock | undefined {
    const { bytes, flags, streamId } = frame;
    let { start, end } = unpad(frame);
    if ((flags & Flag.PRIORITY) !== 0) {
      if (end - start < PRIORITY_BYTES) throw frameSizeError();
      assertNoCycle(bytes, start, streamId);
      start += PRIORITY_BYTES;
    }
    const isEnd = (flags & Flag.END_STREAM) !== 0;
    if ((flags & Flag.END_HEADERS) !== 0) return { streamId, isEnd, bytes, start, end };
    const part = Buffer.from(bytes.subarray(start, end));
    this.#unfinished = { streamId, isEnd, parts: [part], bytes: part.length };
    return undefined;
  }

  /** Takes CONTINUATION. Returns the block if it is whole. */
  goOn({ bytes, start, end, flags, streamId }: Frame): FieldBlock | undefined {
    const block = this.#unfinished;
    if (block === undefined || block.streamId !== streamId) throw protocolError('a CONTINUATION of nothing');
    block.parts.push(Buffer.from(bytes.subarray(start, end)));
    block.bytes += end - start;
    if (block.bytes > MAX_BLOCK_BYTES || block.parts.length > MAX_CONTINUATIONS) {
      throw new ConnectionError(Http2Code.ENHANCE_YOUR_CALM, 'a field block is too long');
    }
    if ((flags & Flag.END_HEADERS) === 0) return undefined;
    this.#unfinished = undefined;
    const whole = Buffer.concat(block.parts);
    return { streamId, isEnd: block.isEnd, bytes: whole, start: 0, end: whole.length };
  }
}

/** The payload without its padding (section 6.1). */
export function unpad({ bytes, flags, start, end }: Frame): { start: number; end: number } {
  if ((flags & Flag.PADDED) === 0) return { start, end };
  if (end === start) throw frameSizeError();
  const padding = bytes[start] as number;
  if (padding >= end - start) throw protocolError('more padding than payload');
  return { start: start + 1, end: end - padding };
}

/** Throws if a stream depends on itself (RFC 7540, section 5.3.1). */
export function assertNoCycle(bytes: Buffer, start: number, streamId: number): void {
  if ((bytes.readUInt32BE(start) & MAX_WINDOW_SIZE) === streamId) {
    throw protocolError('a stream depends on itself');
  }
}
