import { mkdir } from 'node:fs/promises';
import { openFileRegister } from './file-register.js';
import type { Register } from './register.js';

/** Opens the file register and creates its folder if it is missing. */
export async function openRegister(folder: string): Promise<Register> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return openFileRegister(folder);
}
