/**
 * What a witness has cosigned of each log: in files, so that it outlives the process. Size and root are an entry of a
 * checkpoint register: it is replaced by compare-and-swap and durable before anything is signed, so that neither a kill
 * nor a second process on the same folder can have two histories of a log signed.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8 } from '../../proof/bytes/encoding.js';
import { sha256 } from '../../proof/bytes/primitives.js';
import { originHash } from '../../proof/log/add-checkpoint.js';
import type { Checkpoint } from '../../proof/log/checkpoint.js';
import { openFileRegister } from '../log/register/file-register.js';
import type { RegisterEntry } from '../log/register/register.js';
import { openNoteFiles } from './note-files.js';

/** The newest cosigned checkpoint of each log. */
export type History = {
  /** Returns undefined if nothing of this log was ever cosigned. Throws RegisterError if it cannot be read. */
  find(origin: string): Promise<Checkpoint | undefined>;
  /**
   * Stores `next` if `standing` is still the newest. Throws RegisterError if the outcome is unknown.
   *
   * @returns true once `next` is durable; false if another process was faster
   */
  advance(standing: Checkpoint | undefined, next: Checkpoint): Promise<boolean>;
  /** The newest cosigned note; undefined if there is none. A kill may leave the one before. */
  findNote(origin: string): Promise<string | undefined>;
  /** Stores a cosigned note. `findNote` goes on returning that of a larger checkpoint. */
  storeNote(origin: string, note: string): Promise<void>;
};

/** Opens the history in a folder, which is created if it is missing. */
export async function openHistory(folder: string): Promise<History> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const register = openFileRegister(folder);
  const notesOf = (origin: string) => {
    const path = join(folder, originHash(origin));
    return openNoteFiles(`${path}.notes`, `${path}.note`);
  };
  return {
    findNote: (origin) => notesOf(origin).find(),
    async find(origin) {
      const entry = await register.read(originHash(origin));
      return entry && { origin, size: entry.size, rootHash: entry.rootHash };
    },
    advance: (standing, next) => register.replace(standing && entryOf(standing), entryOf(next)),
    storeNote: (origin, note) => notesOf(origin).store(note),
  };
}

/** Keys of a log may be added and removed: its entries depend on the origin alone. */
function entryOf({ origin, size, rootHash }: Checkpoint): RegisterEntry {
  return { origin: originHash(origin), size, rootHash, keyHash: sha256(utf8(origin)) };
}
