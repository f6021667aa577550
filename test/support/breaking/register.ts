/** The register's folder, as an operator would look at it and spoil it. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
