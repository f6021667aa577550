import {
  CLIENT_PREFACE,
  ConnectionError,
  DEFAULT_MAX_FRAME_SIZE,
  FRAME_HEADER_BYTES,
  Http2Code,
} from './protocol.js';

/** A frame; its payload is `bytes` from `start` to `end`, and must not be changed. */
export type Frame = {
  type: number;
  flags: number;
  streamId: number;
  bytes: Buffer;
  start: number;
  end: number;
};

const NOTHING = Buffer.alloc(0);
const ID_MASK = 0x7fff_ffff;

/** Reads the frames of a connection, whose bytes come in pieces of any size, after the client's preface. */
export class FrameReader {
  /** What has come of a frame that is not complete; grows by doubling. */
  #held: Buffer = NOTHING;
  #heldBytes = 0;
  #isOpened = false;

  /**
   * Calls `onFrame`, with the same object each time, for every frame that is complete, until it returns false. Throws a
   * ConnectionError for another preface, and for a frame larger than SETTINGS_MAX_FRAME_SIZE is by default.
   */
  read(chunk: Buffer, onFrame: (frame: Frame) => boolean): void {
    const bytes = this.#join(chunk);
    let at = this.#isOpened ? 0 : this.#readPreface(bytes);
    const frame = { type: 0, flags: 0, streamId: 0, bytes, start: 0, end: 0 };
    while (this.#isOpened && bytes.length - at >= FRAME_HEADER_BYTES) {
      const length = bytes.readUIntBE(at, 3);
      if (length > DEFAULT_MAX_FRAME_SIZE) {
        throw new ConnectionError(Http2Code.FRAME_SIZE_ERROR, 'a frame is larger than the setting allows');
      }
      const start = at + FRAME_HEADER_BYTES;
      if (start + length > bytes.length) break;
      frame.type = bytes[at + 3] as number;
      frame.flags = bytes[at + 4] as number;
      frame.streamId = bytes.readUInt32BE(at + 5) & ID_MASK;
      frame.start = start;
      frame.end = start + length;
      at = frame.end;
      if (!onFrame(frame)) return;
    }
    if (at < bytes.length && at > 0) this.#hold(bytes.subarray(at));
    else if (at === bytes.length) this.#release();
  }

  #readPreface(bytes: Buffer): number {
    const length = Math.min(bytes.length, CLIENT_PREFACE.length);
    if (bytes.compare(CLIENT_PREFACE, 0, length, 0, length) !== 0) {
      throw new ConnectionError(Http2Code.PROTOCOL_ERROR, 'the preface is not that of HTTP/2');
    }
    this.#isOpened = length === CLIENT_PREFACE.length;
    return this.#isOpened ? length : 0;
  }

  /** What is held and the chunk. What comes of it is held as it is when no frame was complete. */
  #join(chunk: Buffer): Buffer {
    if (this.#heldBytes === 0) {
      this.#held = chunk;
      this.#heldBytes = chunk.length;
      return chunk;
    }
    const bytes = this.#heldBytes + chunk.length;
    if (bytes > this.#held.length) {
      const grown = Buffer.allocUnsafe(Math.max(bytes, this.#held.length * 2));
      this.#held.copy(grown, 0, 0, this.#heldBytes);
      this.#held = grown;
    }
    chunk.copy(this.#held, this.#heldBytes);
    this.#heldBytes = bytes;
    return this.#held.subarray(0, bytes);
  }

  /** Copied: the rest must not keep what came before it, nor be written to with what comes after. */
  #hold(rest: Buffer): void {
    this.#held = Buffer.from(rest);
    this.#heldBytes = rest.length;
  }

  #release(): void {
    this.#held = NOTHING;
    this.#heldBytes = 0;
  }
}
