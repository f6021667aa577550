/** Two ways to run out of space for real: a file system of a few megabytes that is filled, and a limit on files' sizes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/** Only root may mount. */
export const MAY_MOUNT = process.geteuid?.() === 0;

export type SmallDisk = {
  path: string;
  /** Takes all space that is left. */
  fill(): void;
  /** Gives it back. */
  free(): void;
  /** Lets it be written to, or not. */
  setWritable(writable: boolean): void;
};

const BLOCK = Buffer.alloc(4096);

/** A tmpfs in a place of its own, mounted until the test ends. */
export async function mountSmallDisk(test: Test, megabytes: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), 'attest-disk-'));
  test.teardown(() => rm(path, { recursive: true, force: true }));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', path]);
  test.teardown(() => execFileSync('umount', ['--lazy', path]));
  const ballast = join(path, 'ballast');
  return {
    path,
    fill: () => {
      const file = openSync(ballast, 'a');
      try {
        while (statfsSync(path).bavail > 0) writeSync(file, BLOCK);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    setWritable: (writable) => void execFileSync('mount', ['-o', `remount,${writable ? 'rw' : 'ro'}`, path]),
  };
}

/**
 * Bounds the size of each file that a process, its children and theirs to come may write (`RLIMIT_FSIZE`); undefined
 * takes the bound away. Done as the processes' own user, who needs no privilege for it.
 */
export function limitFileSize(pid: number, bytes: number | undefined): void {
  const { uid, gid } = statSync(`/proc/${pid}`);
  for (const each of [pid, ...childrenOf(pid)]) {
    const args = ['--pid', String(each), `--fsize=${bytes ?? 'unlimited'}:`];
    const { status, stderr } = spawnSync('prlimit', args, { uid, gid, encoding: 'utf8' });
    // A child may end at any moment.
    if (status !== 0 && (each === pid || !stderr.includes('No such process'))) throw new Error(stderr);
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}
