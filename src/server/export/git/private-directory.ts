/**
 * Directories for secrets and repositories, which only this user can enter. Their names tell which process made them, so
 * that what a killed one left is deleted by the next: by number and start time, because numbers come again.
 */
import { lstat, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

const NAME = /^attest-git-(\d+)-(\d+)-[A-Za-z0-9]{6}$/;

export type PrivateDirectory = { readonly path: string; remove(): Promise<void> };

/** Makes a directory (0700) below `parent`, and deletes there what ended processes left. */
export async function makePrivateDirectory(parent: string): Promise<PrivateDirectory> {
  await removeLeftovers(parent);
  const startTime = (await findStartTime(process.pid)) ?? 0;
  const path = await mkdtemp(join(parent, `attest-git-${process.pid}-${startTime}-`));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) };
}

async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const match = NAME.exec(name);
    if (match === null || (await isAlive(Number(match[1]), match[2]!))) continue;
    await removeOwn(join(parent, name)).catch(() => {});
  }
}

/** In a shared directory others may have made it. */
async function removeOwn(path: string): Promise<void> {
  const { uid } = await lstat(path);
  if (uid === process.geteuid?.()) await rm(path, { recursive: true, force: true });
}

/** Whether the process that made a directory still runs; true if that cannot be known. */
async function isAlive(pid: number, startTime: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const found = await findStartTime(pid);
  return found === undefined || found === startTime;
}

/** When a process started, in clock ticks since boot (proc(5)); undefined without /proc or without that process. */
async function findStartTime(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The command's name in parentheses may contain anything; the fields after it are counted from the third.
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19];
}
