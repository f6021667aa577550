/**
 * The cosigned notes of one log, in a folder: each is a file with the size of its checkpoint as its name, and the largest
 * counts. So of several processes that share the folder none can replace a note by an older one, whichever is slower.
 *
 * Earlier releases had one file beside the folder, which is read until a note in the folder replaces it.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseExtensibleBody } from '../../proof/log/checkpoint.js';
import { parseNote } from '../../proof/log/note.js';
import { hasErrno } from '../core/files/errno.js';
import { readOptionalFile } from '../core/files/read-optional-file.js';
import { syncDirectory, writeFileAtomic } from '../core/files/write-file-atomic.js';

/** The notes of one log. */
type NoteFiles = {
  /** The note of the largest checkpoint; undefined if there is none. */
  find(): Promise<string | undefined>;
  /** Stores a note. Returns once it is durable. */
  store(note: string): Promise<void>;
};

const SIZE = /^(?:0|[1-9]\d{0,14})$/;
/** A listed note may be deleted before it is read: then there is a larger one. */
const LISTINGS = 5;

/** Opens the notes. `earlier` is the file of earlier releases. */
export function openNoteFiles(folder: string, earlier: string): NoteFiles {
  return {
    find: async () => {
      for (let listing = 1; ; listing++) {
        const [largest] = await listSizes(folder);
        if (largest === undefined) return readOptionalFile(earlier);
        const note = await readOptionalFile(join(folder, String(largest)));
        if (note !== undefined) return largerOf(note, await readOptionalFile(earlier));
        if (listing === LISTINGS) throw new Error(`the notes in ${folder} change faster than they are read`);
      }
    },
    store: async (note) => {
      const size = sizeOf(note);
      if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined)
        await syncDirectory(join(folder, '..'));
      await writeFileAtomic(join(folder, String(size)), note);
      for (const other of await listSizes(folder))
        if (other < size) await rm(join(folder, String(other)), { force: true });
      const before = await readOptionalFile(earlier);
      if (before !== undefined && sizeOf(before) <= size) await rm(earlier, { force: true });
    },
  };
}

/** The sizes, the largest first. */
async function listSizes(folder: string): Promise<number[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  });
  return names
    .filter((name) => SIZE.test(name))
    .map(Number)
    .sort((a, b) => b - a);
}

function largerOf(note: string, other: string | undefined): string {
  return other !== undefined && sizeOf(other) > sizeOf(note) ? other : note;
}

function sizeOf(note: string): number {
  return parseExtensibleBody(parseNote(note).text).size;
}
