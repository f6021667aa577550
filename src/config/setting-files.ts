/** Files and directories that settings name. */
import { readFileSync, statSync } from 'node:fs';
import { withoutByteOrderMark } from '../protocol/byte-order-mark.js';
import { InvalidValue, type SettingType } from './settings.js';

const MAX_FILE_BYTES = 1024 * 1024;

/** Reads a text file of at most 1 MiB, without its byte order mark. Throws InvalidValue if it is larger or cannot be read. */
export function readSettingFile(path: string): string {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw new InvalidValue(`${path} is larger than 1 MiB`);
    return withoutByteOrderMark(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof InvalidValue) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    throw new InvalidValue(`${path} cannot be read: ${code}`);
  }
}

/** An existing directory. */
export const directory: SettingType<string> = {
  expected: 'a directory',
  parse: (text) => {
    if (!statSync(text, { throwIfNoEntry: false })?.isDirectory())
      throw new InvalidValue('it does not exist');
    return text;
  },
};
