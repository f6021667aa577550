import { DEFAULT_HEADER_TABLE_SIZE } from './protocol.js';
import { STATIC_TABLE } from './static-table.js';

/** Fields to send: names in lower case and values in turn; every character is of Latin-1. */
export type SentFields = readonly string[];

/** The values of a name that are in the table, and which addition each was. */
type Known = { values: string[]; additions: number[] };

/** More values of one name are such as change with each response. */
const MAX_VALUES = 3;
const MAX_INDEXED_LENGTH = 128;
const FIELD_OVERHEAD = 32;
/** What the integers of a field take at the most, and the two size updates of a block. */
const MAX_FIELD_BYTES = 12;
const MAX_UPDATE_BYTES = 8;

const STATIC_NAMES: ReadonlyMap<string, number> = new Map(
  STATIC_TABLE.map(([name], i) => [name, i + 1] as const).reverse(),
);
const STATIC_STATUS: ReadonlyMap<string, number> = new Map(
  STATIC_TABLE.flatMap(([name, value], i) => (name === ':status' ? [[value, i + 1] as const] : [])),
);

/**
 * Encodes the field blocks of a connection in their order (RFC 7541). The first values of each name go into the dynamic
 * table until it is full; nothing is evicted from it. Strings are sent as they are, without Huffman's code.
 */
export class HpackEncoder {
  #known = new Map<string, Known>();
  #added = 0;
  #size = 0;
  #maxSize = DEFAULT_HEADER_TABLE_SIZE;
  #mustUpdate = false;
  #out: Buffer = Buffer.alloc(0);
  #at = 0;

  /** Takes the client's SETTINGS_HEADER_TABLE_SIZE (RFC 7541, section 4.2). */
  limit(maxSize: number): void {
    const next = Math.min(maxSize, DEFAULT_HEADER_TABLE_SIZE);
    if (next === this.#maxSize) return;
    this.#maxSize = next;
    this.#mustUpdate = true;
    this.#known = new Map();
    this.#size = 0;
    this.#added = 0;
  }

  /** How many bytes a block may take. */
  static maxBytes(fields: SentFields): number {
    let bytes = MAX_UPDATE_BYTES;
    for (const text of fields) bytes += text.length + MAX_FIELD_BYTES / 2;
    return bytes;
  }

  /** Writes a block to `out`, which has room for `maxBytes`, from `at`. Returns where it ends. */
  encode(fields: SentFields, out: Buffer, at: number): number {
    this.#out = out;
    this.#at = at;
    if (this.#mustUpdate) this.#updateSize();
    for (let i = 0; i < fields.length; i += 2) this.#writeField(fields[i] as string, fields[i + 1] as string);
    return this.#at;
  }

  /** To 0 first, which empties the table. */
  #updateSize(): void {
    this.#mustUpdate = false;
    this.#writeInteger(0x20, 0x1f, 0);
    if (this.#maxSize > 0) this.#writeInteger(0x20, 0x1f, this.#maxSize);
  }

  #writeField(name: string, value: string): void {
    const known = this.#known.get(name);
    const index = this.#findPair(known, name, value);
    if (index > 0) this.#writeInteger(0x80, 0x7f, index);
    else this.#writeLiteral(known, name, value);
  }

  /** The index of a field, or 0. */
  #findPair(known: Known | undefined, name: string, value: string): number {
    if (name === ':status') {
      const index = STATIC_STATUS.get(value);
      if (index !== undefined) return index;
    }
    const place = known === undefined ? -1 : known.values.indexOf(value);
    return known === undefined || place < 0 ? 0 : this.#indexOf(known.additions[place] as number);
  }

  #writeLiteral(known: Known | undefined, name: string, value: string): void {
    const isAdded = this.#mayAdd(known, name, value);
    const nameIndex =
      STATIC_NAMES.get(name) ?? (known === undefined ? 0 : this.#indexOf(known.additions[0] as number));
    if (isAdded) this.#writeInteger(0x40, 0x3f, nameIndex);
    // Never indexed (section 7.1.3): what a session is known by.
    else this.#writeInteger(name === 'set-cookie' ? 0x10 : 0, 0x0f, nameIndex);
    if (nameIndex === 0) this.#writeString(name);
    this.#writeString(value);
    if (isAdded) this.#add(known, name, value);
  }

  #indexOf(addition: number): number {
    return STATIC_TABLE.length + this.#added - addition;
  }

  #mayAdd(known: Known | undefined, name: string, value: string): boolean {
    if (known !== undefined && known.values.length >= MAX_VALUES) return false;
    if (value.length > MAX_INDEXED_LENGTH || name === 'date' || name === 'set-cookie') return false;
    return this.#size + name.length + value.length + FIELD_OVERHEAD <= this.#maxSize;
  }

  #add(known: Known | undefined, name: string, value: string): void {
    const addition = this.#added++;
    this.#size += name.length + value.length + FIELD_OVERHEAD;
    if (known === undefined) this.#known.set(name, { values: [value], additions: [addition] });
    else {
      known.values.push(value);
      known.additions.push(addition);
    }
  }

  /** Section 5.1. */
  #writeInteger(pattern: number, mask: number, value: number): void {
    const out = this.#out;
    if (value < mask) {
      out[this.#at++] = pattern | value;
      return;
    }
    out[this.#at++] = pattern | mask;
    let rest = value - mask;
    for (; rest >= 128; rest = Math.floor(rest / 128)) out[this.#at++] = (rest & 0x7f) | 0x80;
    out[this.#at++] = rest;
  }

  #writeString(text: string): void {
    this.#writeInteger(0, 0x7f, text.length);
    this.#at += this.#out.write(text, this.#at, 'latin1');
  }
}
