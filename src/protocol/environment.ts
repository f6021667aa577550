import { Environment, EnvironmentSchema } from '../../gen/attestation/v1/environment_pb.js';
import { enumNamesByNumber } from './enum-names.js';

/** Name of an environment on REST and in keys, statements, origins and paths. */
export type EnvironmentName = 'live' | 'test';

/** All environments. */
export const ENVIRONMENTS = [Environment.LIVE, Environment.TEST] as const;

const NAMES = enumNamesByNumber(EnvironmentSchema) as ReadonlyMap<number, EnvironmentName>;

/** Name of the environment with this number. Throws if it has none. */
export function environmentName(environment: number): EnvironmentName {
  const name = NAMES.get(environment);
  if (name === undefined) throw new Error(`no environment has the number ${environment}`);
  return name;
}

/** Environment with this name. */
export function environmentNumber(name: EnvironmentName): (typeof ENVIRONMENTS)[number] {
  return ENVIRONMENTS.find((number) => NAMES.get(number) === name) as (typeof ENVIRONMENTS)[number];
}
