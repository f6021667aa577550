/** Values of Ethereum's JSON-RPC (execution-apis: QUANTITY and DATA), decoded strictly. */
import { FormatError } from '../bytes/format-error.js';

/** Calls one method of a node and returns its `result`. Rejects if the node is not reached or answers with an error. */
export type JsonRpc = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** An integer below 2^256. Throws FormatError unless it is 0x and hex digits without leading zeros. */
export function decodeQuantity(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x(?:0|[1-9a-f][0-9a-f]{0,63})$/i.test(value)) {
    throw new FormatError('not a quantity');
  }
  return BigInt(value);
}

/** An integer below 2^53. Throws FormatError on anything else. */
export function decodeNumber(value: unknown): number {
  const number = Number(decodeQuantity(value));
  if (!Number.isSafeInteger(number)) throw new FormatError('not a quantity below 2^53');
  return number;
}

/** `length` bytes as 0x and lower-case hex. Throws FormatError on anything else; capital letters are accepted. */
export function decodeData(value: unknown, length: number): string {
  if (typeof value !== 'string' || value.length !== 2 + 2 * length || !/^0x[0-9a-f]*$/i.test(value)) {
    throw new FormatError(`not ${length} bytes of data`);
  }
  return value.toLowerCase();
}

/** The members of an object. Throws FormatError on anything else. */
export function decodeObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new FormatError('not an object');
  }
  return value as Readonly<Record<string, unknown>>;
}

/** An array of at most `maxLength` items, each decoded. Throws FormatError on anything else. */
export function decodeArray<T>(value: unknown, maxLength: number, decode: (item: unknown) => T): T[] {
  if (!Array.isArray(value)) throw new FormatError('not an array');
  if (value.length > maxLength) throw new FormatError(`more than ${maxLength} items`);
  return value.map(decode);
}

/** The quantity of an integer. */
export function encodeQuantity(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}
