import { readFile } from 'node:fs/promises';
import { withoutByteOrderMark } from '../../../protocol/byte-order-mark.js';
import { hasErrno } from './errno.js';

/** Reads a file as UTF-8, without its byte order mark. Returns undefined if it does not exist. */
export async function readOptionalFile(path: string): Promise<string | undefined> {
  try {
    return withoutByteOrderMark(await readFile(path, 'utf8'));
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}
