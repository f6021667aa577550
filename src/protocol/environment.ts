import { Environment, EnvironmentSchema } from '../../gen/attestation/v1/environment_pb.js';
import { enumName, findEnumNumber } from './enum-names.js';

/** How an environment is spelled, on REST as in keys, statements, origins and paths. */
export type EnvironmentName = 'live' | 'test';

/** The environments that there are. */
export const ENVIRONMENTS = [Environment.LIVE, Environment.TEST] as const;

/** How the environment with this number is spelled; throws when it has no spelling. */
export function environmentName(environment: number): EnvironmentName {
  return enumName(EnvironmentSchema, environment) as EnvironmentName;
}

/** The environment that is spelled so. */
export function environmentNumber(name: EnvironmentName): (typeof ENVIRONMENTS)[number] {
  return findEnumNumber(EnvironmentSchema, name) as (typeof ENVIRONMENTS)[number];
}
