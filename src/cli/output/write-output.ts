/** Files that a flag names for the output. */
import { existsSync, statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { UsageError } from '../cli.js';
import { errnoReason } from '../input/input-file.js';

/** Throws UsageError if there is a file, which only --force overwrites. A pipe or device, such as /dev/stdout, is no file. */
export function assertNew(path: string, { force }: { force?: boolean | undefined }): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (force || found === undefined || found.isFIFO() || found.isCharacterDevice()) return;
  throw new UsageError(`${path} exists, perhaps as the only copy: give another name, or --force`);
}

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
