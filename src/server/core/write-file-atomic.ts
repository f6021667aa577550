import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a whole file so that a reader, or a start after a power cut, finds the old content or the new one and never
 * a part. The file gets exactly `mode`, 0600 unless told.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  { mode = 0o600 }: { mode?: number } = {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeNew(temporary, data, mode);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory durable: a rename is on disk only after this. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeNew(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    // The mode given to open is narrowed by the umask.
    await handle.chmod(mode);
    await handle.writeFile(data);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
