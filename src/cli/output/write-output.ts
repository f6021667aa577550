/** Files that a flag names for the output. */
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { UsageError } from '../cli.js';
import { errnoReason } from '../input/input-file.js';

/** Writes a file, over one that is there. Throws UsageError if it cannot be written; then a new one is removed again. */
export async function writeOutput(path: string, data: string | Uint8Array): Promise<void> {
  const isNew = !existsSync(path);
  try {
    await writeFile(path, data);
  } catch (error) {
    if (isNew) await rm(path, { force: true }).catch(() => {});
    throw new UsageError(`${path} cannot be written: ${errnoReason(error as Error)}`);
  }
}
