/** The register's folder, as an operator would look at it and spoil it. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { MAY_MOUNT, mountSmallDisk } from './small-disk.js';

/** Where the entry of a log is kept. */
export function entryPlace(register: string, origin: string): string {
  return join(register, `${origin}.checkpoint`);
}

/** `<size> <root>` of the entry of a log; throws when there is none. */
export function readEntry(register: string, origin: string): string {
  const names = readdirSync(entryPlace(register, origin));
  const [size, root] = (names[0] ?? '').split('-');
  if (names.length !== 1) throw new Error(`the register has ${names.length} entries of ${origin}`);
  return `${size} ${root}`;
}

/** Makes the register have this entry, in the form of earlier releases, and no other. */
export function setEarlierEntry(register: string, origin: string, size: number, root: string): void {
  rmSync(entryPlace(register, origin), { recursive: true, force: true });
  writeFileSync(join(register, origin), `${size} ${root}\n`);
}

/** A register's folder that can be made one to which nothing is written: root may write to any but a read-only file system. */
export async function openFolder(
  t: Test,
  origin: string,
): Promise<{ path: string; setWritable(writable: boolean): Promise<void> }> {
  if (MAY_MOUNT) {
    const disk = await mountSmallDisk(t, 1);
    return { path: disk.path, setWritable: async (writable) => disk.setWritable(writable) };
  }
  const path = await mkdtemp(join(tmpdir(), 'attest-register-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return { path, setWritable: (writable) => chmod(entryPlace(path, origin), writable ? 0o700 : 0o500) };
}
