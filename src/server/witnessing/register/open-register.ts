import { mkdir } from 'node:fs/promises';
import type { RegisterConfig } from '../../../config/checkpoint-register.js';
import { openFileRegister } from '../../log/register/file-register.js';
import type { Register } from '../../log/register/register.js';
import { openWitnessRegister } from './witness-register.js';

/** Opens the register: a folder, which is created if it is missing, or a witness. */
export async function openRegister(config: RegisterConfig): Promise<Register> {
  if (typeof config !== 'string') return openWitnessRegister({}, config);
  await mkdir(config, { recursive: true, mode: 0o700 });
  return openFileRegister(config);
}
