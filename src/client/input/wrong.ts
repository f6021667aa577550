import { jsonPointer } from '../../protocol/json-pointer.js';

/** Names of members and indexes of items from the argument of a call to a value in it. */
export type Path = readonly (string | number)[];

/** The error of an argument: where it is wrong, as a JSON pointer (RFC 6901), and what is wrong. */
export function wrong(path: Path, problem: string): TypeError {
  return new TypeError(`${path.length === 0 ? 'the argument' : jsonPointer(path)} ${problem}`);
}
