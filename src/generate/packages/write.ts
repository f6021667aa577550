/** Writes files of a package, and the folders that they are in. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes code; a reference to its source map, which is not packed, is left out. */
export function writeFile(path: string, code: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, code.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''));
}

/** Writes a value as indented JSON. */
export function writeJson(path: string, value: object): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Copies a file as it is. */
export function copyFile(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}
