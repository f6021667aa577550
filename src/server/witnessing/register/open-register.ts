import { mkdir } from 'node:fs/promises';
import type { RegisterConfig } from '../../../config/checkpoint-register.js';
import { openOperatorStore } from '../../exports/destinations/operator-store.js';
import { openFileRegister } from '../../log/register/file-register.js';
import { openObjectRegister } from '../../log/register/object-register.js';
import type { Register } from '../../log/register/register.js';
import { openWitnessRegister } from './witness-register.js';

/** Opens the register: a folder, which is created if it is missing, a store of objects, or a witness. */
export async function openRegister(config: RegisterConfig): Promise<Register> {
  if (typeof config !== 'string' && 'url' in config) return openWitnessRegister({}, config);
  if (typeof config !== 'string') return openObjectRegister(await openOperatorStore(config));
  await mkdir(config, { recursive: true, mode: 0o700 });
  return openFileRegister(config);
}
