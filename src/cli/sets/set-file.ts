/** Set files on disk. */
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Pieces } from '../../proof/set/lines.js';
import { UsageError } from '../cli.js';
import { errnoReason, inputFileSize } from '../input/input-file.js';

const PIECE_BYTES = 1024 * 1024;

/** Opens a set file for one pass. Throws UsageError if it is not there or is a directory. */
export async function openSet(path: string): Promise<Pieces> {
  await inputFileSize(path);
  return readPieces(path);
}

async function* readPieces(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { highWaterMark: PIECE_BYTES });
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${errnoReason(error as Error)}`);
  }
}

/**
 * Writes text as a file that is whole or not there: under another name in its folder first, then on disk, then renamed; with
 * `isNew` over no other file. Throws UsageError if it cannot be written or such a file is there, and what reading the text
 * throws; then what was written is removed.
 */
export async function writeWhole(
  path: string,
  text: AsyncIterable<string>,
  { isNew = false }: { isNew?: boolean | undefined } = {},
): Promise<void> {
  const temporary = temporaryPath(path);
  const failed = (error: Error) => {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} cannot be written: ${errnoReason(error)}`);
  };
  const file = await open(temporary, 'wx').catch(failed);
  try {
    let pending = '';
    for await (const piece of text) {
      pending += piece;
      if (pending.length < PIECE_BYTES) continue;
      await file.writeFile(pending).catch(failed);
      pending = '';
    }
    await file.writeFile(pending).catch(failed);
    await file.sync();
    await file.close();
    if (isNew) await linkNew(temporary, path).catch(failed);
    else await rename(temporary, path).catch(failed);
  } catch (error) {
    await file.close().catch(() => {});
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/**
 * Renames a file to a name that no file has: by a link, which overwrites none, also none that another run makes now. Throws
 * UsageError if there is one.
 */
async function linkNew(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' && !existsSync(to)) return await rename(from, to);
    throw new UsageError(
      `${to} was written meanwhile, by another run: with its --build the same command takes it, else give another name`,
    );
  }
  await rm(from, { force: true });
}

function temporaryPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
}

/** Whether a path is that of a file, or of one that writeWhole makes before it, perhaps in a run that was killed. */
export function isOutput(path: string, output: string): boolean {
  if (path === output) return true;
  const start = join(dirname(output), `.${basename(output)}.`);
  return path.startsWith(start) && /^[0-9a-f]{12}\.tmp$/.test(path.slice(start.length));
}

/** So that the name survives a power cut as well. Windows opens no folders. */
async function syncFolder(folder: string): Promise<void> {
  const opened: FileHandle | undefined = await open(folder, 'r').catch(() => undefined);
  await opened?.sync().catch(() => {});
  await opened?.close();
}
