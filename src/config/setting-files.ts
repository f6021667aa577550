/** Settings that name files whose content is checked at start. */
import { readFileSync, statSync } from 'node:fs';
import { InvalidValue, type SettingType } from './settings.js';

const MAX_FILE_BYTES = 1024 * 1024;

/** The text of a file of at most 1 MiB; throws InvalidValue when it cannot be had. */
export function readSettingFile(path: string): string {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw new InvalidValue(`${path} is larger than 1 MiB`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof InvalidValue) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    throw new InvalidValue(`${path} cannot be read: ${code}`);
  }
}

/** A directory that is there. */
export const directory: SettingType<string> = {
  expected: 'a directory',
  parse: (text) => {
    if (!statSync(text, { throwIfNoEntry: false })?.isDirectory()) throw new InvalidValue('it is not there');
    return text;
  },
};
