/**
 * Directories for secrets and repositories, which only this user can enter. What a killed process left is deleted by the
 * next: the kernel has released its lock. Processes of other containers, which may share the parent, cannot be seen, but
 * their locks can.
 */
import { lstat, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findFileLock } from '../../../core/files/file-lock.js';

/** The number and start time of the process that made it: while that is seen to run, its lock need not be tried. */
const NAME = /^attest-git-(\d+)-(\d+)-[A-Za-z0-9]{6}$/;
const LOCK = '.lock';
/** A directory without a lock is of an earlier release, or its process has not locked it yet. */
const UNLOCKED_FOR_MS = 24 * 3_600_000;

export type PrivateDirectory = { readonly path: string; remove(): Promise<void> };

/** Makes a directory (0700) below `parent`, and deletes there the directories of ended processes. */
export async function makePrivateDirectory(parent: string): Promise<PrivateDirectory> {
  await removeLeftovers(parent);
  const startTime = (await findStartTime(process.pid)) ?? 0;
  const path = await mkdtemp(join(parent, `attest-git-${process.pid}-${startTime}-`));
  // A lock file has its name only once it is locked.
  const lock = await findFileLock(join(path, `${LOCK}.new`));
  await rename(join(path, `${LOCK}.new`), join(path, LOCK));
  const remove = async () => {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
    await lock?.release();
  };
  return { path, remove };
}

async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const match = NAME.exec(name);
    if (match === null || (await isSeenRunning(Number(match[1]), match[2]!))) continue;
    await removeUnlocked(join(parent, name)).catch(() => {});
  }
}

/** Deletes a directory that no process has locked. In a shared parent other users may have made it. */
async function removeUnlocked(path: string): Promise<void> {
  const { uid, mtimeMs } = await lstat(path);
  if (uid !== process.geteuid?.()) return;
  const hasLock = await lstat(join(path, LOCK)).then(
    () => true,
    () => false,
  );
  if (!hasLock && Date.now() - mtimeMs < UNLOCKED_FOR_MS) return;
  const lock = hasLock ? await findFileLock(join(path, LOCK)) : undefined;
  if (hasLock && lock === undefined) return;
  await rm(path, { recursive: true, force: true });
  await lock?.release();
}

/** Whether the process that made a directory is seen to run: numbers come again, with other start times. */
async function isSeenRunning(pid: number, startTime: string): Promise<boolean> {
  return (await findStartTime(pid)) === startTime;
}

/** When a process started, in clock ticks since boot (proc(5)); undefined without /proc or without that process. */
async function findStartTime(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The command's name in parentheses may contain anything; the fields after it are counted from the third.
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19];
}
