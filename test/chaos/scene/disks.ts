/** File systems of a campaign's own, which can be filled and made to hang. Only root may mount them. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';

/** All but `path` are asynchronous: a call that writes to a frozen disk waits for `thaw`, which must stay possible. */
export type Disk = {
  path: string;
  /** Takes all space that is left. */
  fill(): Promise<void>;
  /** Gives it back. */
  free(): Promise<void>;
  /** Every write and fsync waits until `thaw`, as on a disk that does not answer. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
};

/** By what is on them; undefined where nothing can be mounted, and a plain directory stands in for each. */
export type Disks = { paths: Record<DiskName, string>; disks: Record<DiskName, Disk> | undefined };
export type DiskName = 'postgres' | 'nats' | 'register';

/** Postgres's is sparse: it takes the room that the data takes. */
const MEGABYTES: Record<DiskName, number> = { postgres: 16_384, nats: 192, register: 8 };
const start = promisify(execFile);
const NAMES = Object.keys(MEGABYTES) as DiskName[];

/** Makes the three file systems below `dir` if they are wanted and can be had, unmounted by `hooks`. */
export function openDisks(dir: string, hooks: ShutdownHooks, wanted: boolean): Disks {
  const each = <T>(make: (name: DiskName) => T) =>
    Object.fromEntries(NAMES.map((name) => [name, make(name)])) as Record<DiskName, T>;
  const paths = each((name) => join(dir, name));
  for (const path of Object.values(paths)) mkdirSync(path, { mode: 0o711 });
  if (!wanted || process.geteuid?.() !== 0) return { paths, disks: undefined };
  try {
    return { paths, disks: each((name) => mountDisk(dir, paths[name], MEGABYTES[name], hooks)) };
  } catch {
    return { paths, disks: undefined };
  }
}

function mountDisk(dir: string, path: string, megabytes: number, hooks: ShutdownHooks): Disk {
  const image = join(dir, `${path.split('/').at(-1)}.img`);
  const run = (file: string, ...args: string[]) => execFileSync(file, args, { stdio: 'pipe' });
  run('truncate', '-s', `${megabytes}M`, image);
  run('mkfs.ext4', '-q', '-m', '0', '-E', 'lazy_itable_init=1,lazy_journal_init=1', image);
  run('mount', '-o', 'loop,noatime', image, path);
  hooks.add(async () => run('umount', '--lazy', path));
  rmSync(join(path, 'lost+found'), { recursive: true, force: true });
  const ballast = join(path, 'ballast');
  return {
    path,
    fill: async () => {
      await start('fallocate', ['-l', `${megabytes}M`, ballast]).catch(() => fillUp(ballast));
    },
    free: () => rm(ballast, { force: true }),
    freeze: async () => {
      await start('fsfreeze', ['--freeze', path]);
    },
    thaw: async () => {
      await start('fsfreeze', ['--unfreeze', path]);
    },
  };
}

/** fallocate takes all or nothing, so what is left is halved until nothing is. */
async function fillUp(ballast: string): Promise<void> {
  const script =
    'size=17179869184; end=$(stat -c %s "$0" 2>/dev/null || echo 0); while [ $size -ge 1024 ]; do if fallocate -o $end -l $size "$0" 2>/dev/null; then end=$((end + size)); else size=$((size / 2)); fi; done';
  await start('sh', ['-c', script, ballast]);
}
