const NOTHING = Buffer.alloc(0);

/** Bytes of a body that are not read yet, in one buffer, however small the frames were that they came in. */
export class ReceiveBuffer {
  length = 0;
  #bytes: Buffer = NOTHING;
  /** Whether `#bytes` is our own, with room at its end, or a part of what the socket has read. */
  #isOwn = false;

  /** Adds bytes, which are not copied if they are the first. */
  append(bytes: Buffer): void {
    if (this.length === 0) {
      this.#bytes = bytes;
      this.#isOwn = false;
      this.length = bytes.length;
      return;
    }
    const length = this.length + bytes.length;
    if (!this.#isOwn || length > this.#bytes.length) this.#grow(length);
    bytes.copy(this.#bytes, this.length);
    this.length = length;
  }

  /** Returns all and is empty. What is returned keeps no more memory than twice its size. */
  take(): Buffer {
    const bytes = this.#bytes.subarray(0, this.length);
    this.length = 0;
    this.#bytes = NOTHING;
    return bytes.length * 2 < bytes.buffer.byteLength ? Buffer.from(bytes) : bytes;
  }

  /** Lets go of what the socket has read, before it is kept for longer. */
  own(): void {
    if (!this.#isOwn && this.length > 0) this.#grow(this.length);
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafe(Math.max(length, this.#isOwn ? this.#bytes.length * 2 : length));
    this.#bytes.copy(grown, 0, 0, this.length);
    this.#bytes = grown;
    this.#isOwn = true;
  }
}
