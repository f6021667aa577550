import { Environment, EnvironmentSchema } from '../../gen/attestation/v1/environment_pb.js';
import { enumName, findEnumNumber } from './enum-names.js';

/** Name of an environment on REST and in keys, statements, origins and paths. */
export type EnvironmentName = 'live' | 'test';

/** All environments. */
export const ENVIRONMENTS = [Environment.LIVE, Environment.TEST] as const;

/** Name of the environment with this number. Throws if it has none. */
export function environmentName(environment: number): EnvironmentName {
  return enumName(EnvironmentSchema, environment) as EnvironmentName;
}

/** Environment with this name. */
export function environmentNumber(name: EnvironmentName): (typeof ENVIRONMENTS)[number] {
  return findEnumNumber(EnvironmentSchema, name) as (typeof ENVIRONMENTS)[number];
}
