/** Files that settings name. */
import { readFileSync, statSync } from 'node:fs';
import { withoutByteOrderMark } from '../protocol/byte-order-mark.js';
import { InvalidValue } from './invalid-value.js';

const MAX_FILE_BYTES = 1024 * 1024;

/** Reads a text file of at most 1 MiB, without its byte order mark. Throws InvalidValue if it is larger or cannot be read. */
export function readSettingFile(path: string): string {
  return readText(path, path);
}

/**
 * Reads a file with one secret, without its byte order mark and without the line break at its end. Throws InvalidValue,
 * which does not quote `path`, if it is empty, no file, larger than 1 MiB or cannot be read.
 */
export function readSecretFile(path: string): string {
  const text = readText(path, 'the file', { isRegular: true }).replace(/\r?\n$/, '');
  if (text === '') throw new InvalidValue('the file is empty');
  return text;
}

/** `isRegular` refuses folders, pipes and devices, of which the last two may never end. */
function readText(path: string, shown: string, { isRegular = false } = {}): string {
  try {
    const stats = statSync(path);
    if (isRegular && !stats.isFile()) throw new InvalidValue(`${shown} is a folder, pipe or device`);
    if (stats.size > MAX_FILE_BYTES) throw new InvalidValue(`${shown} is larger than 1 MiB`);
    return withoutByteOrderMark(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof InvalidValue) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    throw new InvalidValue(`${shown} cannot be read: ${code}`);
  }
}
