import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { environmentName } from '../../protocol/environment.js';
import type { Logger } from '../core/logger.js';
import type { Check } from './ops-listener.js';

const REASON =
  'nobody but this service vouches for the live log: its proofs say no time, and who runs the service could make another ' +
  'log. Name a witness in WITNESSES';

/**
 * Warns if the live environment has no witness beyond its log: in the log file at once, and on `/readyz`. Test data needs
 * none.
 */
export function warnIfUnwitnessed(
  witnesses: readonly { readonly environments: readonly number[] }[],
  log: Logger,
): Check[] {
  if (witnesses.some(({ environments }) => environments.includes(Environment.LIVE))) return [];
  log.warn(REASON);
  const environment = environmentName(Environment.LIVE);
  return [{ name: 'witnesses', environment, isWarning: true, check: async () => REASON }];
}
