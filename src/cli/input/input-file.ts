/** Files named on the command line. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { UsageError } from '../cli.js';

const MIB = 1024 * 1024;

/** Reads a file or pipe of at most `maxBytes`; `what` names its content in errors. Throws UsageError. */
export async function readInputFile(path: string, what: string, maxBytes: number): Promise<Uint8Array> {
  await inputFileSize(path);
  const bytes = Buffer.concat(await readPieces(path, maxBytes));
  if (bytes.length > maxBytes)
    throw new UsageError(`${path} is too large for ${what}: over ${maxBytes / MIB} MiB`);
  return bytes;
}

/** The size of a file in bytes, 0 for a pipe. Throws UsageError if it cannot be read or is a directory. */
export async function inputFileSize(path: string): Promise<number> {
  const found = await stat(path).catch((error: Error) => {
    const hint = path === '-' ? ' (standard input is /dev/stdin)' : '';
    throw new UsageError(`${path} cannot be read: ${errnoReason(error)}${hint}`);
  });
  if (found.isDirectory()) throw new UsageError(`${path} is a directory`);
  return found.size;
}

async function readPieces(path: string, maxBytes: number): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  try {
    // `end` is inclusive: this reads one byte more than allowed.
    for await (const piece of createReadStream(path, { end: maxBytes })) pieces.push(piece);
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${errnoReason(error as Error)}`);
  }
  return pieces;
}

/** The message of an error of the file system without its system call and path: `ENOENT: no such file or directory`. */
export function errnoReason({ message }: Error): string {
  return message.replace(/, [a-z]+( '.*')?$/s, '');
}
