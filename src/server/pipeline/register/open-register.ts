import { mkdir } from 'node:fs/promises';
import { openFileRegister } from './file-register.js';
import type { Register } from './register.js';

/** The register in a folder of files, which is made when it is not there. */
export async function openRegister(folder: string): Promise<Register> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return openFileRegister(folder);
}
