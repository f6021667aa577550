import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { LOG_WITNESS_NAME } from '../../proof/bundle/bundle.js';
import { ENVIRONMENTS } from '../../protocol/environment.js';
import type { ConfiguredWitness } from '../pipeline/pipeline.js';
import type { Pool } from '../store/database/connect.js';
import { listLogs } from '../store/log/logs.js';
import { ensurePolicy } from '../store/witnesses/policies.js';
import {
  ensureTimestampAuthority,
  retireTimestampAuthorities,
} from '../store/witnesses/timestamp-authorities.js';
import { ensureWitnessStates } from '../store/witnesses/witnesses.js';

/** A configured witness. `authority`: the trust roots' entry of a time-stamping authority. */
export type WitnessSetup = ConfiguredWitness & {
  authority?: { url: string; operator: string; certChainPem: string[] };
};

/**
 * Stores the configured witnesses: each environment's policy, the certificate chains of the authorities, and a state
 * per log and witness. Authorities that are no longer configured are retired.
 */
export async function setUpWitnesses(
  pool: Pool,
  witnesses: readonly WitnessSetup[],
  deadlineMs: number,
): Promise<void> {
  for (const { witness, authority } of witnesses) {
    if (authority) await ensureTimestampAuthority(pool, { name: witness.name, ...authority });
  }
  const authorities = witnesses.filter(({ authority }) => authority !== undefined);
  await retireTimestampAuthorities(
    pool,
    authorities.map(({ witness }) => witness.name),
    deadlineMs,
  );
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const configured = witnesses.filter(({ environments }) => environments.includes(number));
    const named = configured.map(({ witness, kind, required }) => ({ name: witness.name, kind, required }));
    const log = { name: LOG_WITNESS_NAME, kind: WitnessKind.TRANSPARENCY_LOG, required: true };
    await ensurePolicy(pool, { environment: number, witnesses: [log, ...named], deadlineMs });
    for (const { id } of logs.filter(({ environment }) => environment === number)) {
      await ensureWitnessStates(
        pool,
        id,
        named.map(({ name }) => name),
      );
    }
  }
}
