import { type Field, makeField } from './fields.js';
import { decodeHuffman } from './huffman.js';
import { ConnectionError, DEFAULT_HEADER_TABLE_SIZE, Http2Code } from './protocol.js';
import { STATIC_TABLE } from './static-table.js';

const STATIC: readonly Field[] = STATIC_TABLE.map(([name, value]) => makeField(name, value));
/** Places of the ring that holds the dynamic table: as many as the smallest fields would need. */
const RING = DEFAULT_HEADER_TABLE_SIZE / 32;
/** An integer beyond this is none of ours (RFC 7541, section 5.1). */
const MAX_INTEGER = 2 ** 24;

/** Decodes the field blocks of a connection in their order (RFC 7541). Its table is bounded by 4,096, the default. */
export class HpackDecoder {
  readonly #ring: (Field | undefined)[] = new Array(RING).fill(undefined);
  /** Fields added so far; the newest is at `(#added - 1) % RING`. */
  #added = 0;
  #count = 0;
  #size = 0;
  #maxSize = DEFAULT_HEADER_TABLE_SIZE;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  /**
   * Decodes a whole block. Fields beyond `maxListSize` (RFC 9113, section 6.5.2) are decoded and dropped: then the result
   * is undefined. Throws a ConnectionError of COMPRESSION_ERROR if it is malformed; nothing can be decoded after that.
   */
  decode(block: Buffer, start: number, end: number, maxListSize: number): Field[] | undefined {
    this.#block = block;
    this.#at = start;
    this.#end = end;
    const fields: Field[] = [];
    let size = 0;
    this.#readSizeUpdates();
    while (this.#at < end) {
      const field = this.#readField();
      size += field.size;
      if (size <= maxListSize) fields.push(field);
    }
    return size <= maxListSize ? fields : undefined;
  }

  /** Section 6.3: only at the beginning of a block. */
  #readSizeUpdates(): void {
    while (this.#at < this.#end && ((this.#block[this.#at] as number) & 0xe0) === 0x20) {
      const size = this.#readInteger(0x1f);
      if (size > DEFAULT_HEADER_TABLE_SIZE) throw malformed('a table of more than the setting allows');
      this.#maxSize = size;
      this.#evict(0);
    }
  }

  #readField(): Field {
    const first = this.#block[this.#at] as number;
    if ((first & 0x80) !== 0) return this.#lookUp(this.#readInteger(0x7f));
    if ((first & 0x40) !== 0) {
      const field = this.#readLiteral(0x3f);
      this.#add(field);
      return field;
    }
    if ((first & 0x20) !== 0) throw malformed('a size update after a field');
    return this.#readLiteral(0x0f);
  }

  #readLiteral(mask: number): Field {
    const index = this.#readInteger(mask);
    const name = index === 0 ? this.#readString() : this.#lookUp(index).name;
    return makeField(name, this.#readString());
  }

  #lookUp(index: number): Field {
    const field =
      index <= STATIC.length
        ? STATIC[index - 1]
        : index - STATIC.length <= this.#count
          ? this.#ring[(this.#added - (index - STATIC.length)) % RING]
          : undefined;
    if (field === undefined) throw malformed('an index of no field');
    return field;
  }

  #add(field: Field): void {
    this.#evict(field.size);
    // Section 4.4: one that is larger than the table empties it.
    if (field.size > this.#maxSize) return;
    this.#ring[this.#added % RING] = field;
    this.#added++;
    this.#count++;
    this.#size += field.size;
  }

  #evict(room: number): void {
    while (this.#count > 0 && this.#size + room > this.#maxSize) {
      const oldest = (this.#added - this.#count) % RING;
      this.#size -= (this.#ring[oldest] as Field).size;
      this.#ring[oldest] = undefined;
      this.#count--;
    }
  }

  /** Section 5.1; the bits of `mask` are the prefix. */
  #readInteger(mask: number): number {
    let value = this.#readByte() & mask;
    if (value < mask) return value;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#readByte();
      value += (byte & 0x7f) * factor;
      if (value > MAX_INTEGER || factor > MAX_INTEGER) throw malformed('an integer that is too large');
      if ((byte & 0x80) === 0) return value;
    }
  }

  #readByte(): number {
    if (this.#at >= this.#end) throw malformed('an end within a field');
    return this.#block[this.#at++] as number;
  }

  /** Section 5.2. */
  #readString(): string {
    const isHuffman = this.#at < this.#end && ((this.#block[this.#at] as number) & 0x80) !== 0;
    const length = this.#readInteger(0x7f);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw malformed('an end within a string');
    this.#at = end;
    if (!isHuffman) return this.#block.toString('latin1', start, end);
    const text = decodeHuffman(this.#block, start, end);
    if (text === undefined) throw malformed('a string that is not in the code');
    return text;
  }
}

function malformed(what: string): ConnectionError {
  return new ConnectionError(Http2Code.COMPRESSION_ERROR, `a field block has ${what}`);
}
