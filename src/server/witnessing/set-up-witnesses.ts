import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { membersIn, type QuorumConfig } from '../../config/witnesses/witness-policy.js';
import { LOG_WITNESS_NAME } from '../../proof/bundle/bundle.js';
import { ENVIRONMENTS } from '../../protocol/environment.js';
import type { Pool } from '../database/connect.js';
import { listLogs } from '../log/store/logs.js';
import { ensurePolicy, type Quorum } from '../log/store/policies.js';
import { ensureTimestampAuthority, retireTimestampAuthorities } from './store/timestamp-authorities.js';
import { replaceTrustedWitnesses, type WitnessIdentity } from './store/trusted-witnesses.js';
import { ensureWitnessStates } from './store/witnesses.js';
import type { ConfiguredWitness } from './witness-stage.js';

/**
 * A configured witness. `authority`: the trust roots' entry of a time-stamping authority; `identity`: by what verifiers
 * recognise a witness of another kind.
 */
export type WitnessSetup = ConfiguredWitness & {
  authority?: { url: string; operator: string; certChainsPem: string[][] };
  identity?: WitnessIdentity;
};

/** Which witnesses a batch needs beside the required ones, and for how long it waits for them. */
type WitnessPolicyConfig = { readonly quorums: readonly QuorumConfig[]; readonly deadlineMs: number };

/**
 * Stores the configured witnesses: each environment's policy, what verifiers recognise them by, and a state per log and
 * witness. Witnesses that are no longer configured are retired.
 */
export async function setUpWitnesses(
  pool: Pool,
  witnesses: readonly WitnessSetup[],
  { quorums, deadlineMs }: WitnessPolicyConfig,
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
  const trusted = witnesses.flatMap(({ witness: { name }, identity }) =>
    identity === undefined ? [] : [{ name, identity }],
  );
  await replaceTrustedWitnesses(pool, trusted, deadlineMs);
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const configured = witnesses.filter(({ environments }) => environments.includes(number));
    const named = configured.map(({ witness, kind, required }) => ({ name: witness.name, kind, required }));
    const log = { name: LOG_WITNESS_NAME, kind: WitnessKind.TRANSPARENCY_LOG, required: true };
    await ensurePolicy(pool, {
      environment: number,
      witnesses: [log, ...named],
      quorums: quorumsOf(number, quorums, configured),
      deadlineMs,
    });
    for (const { id } of logs.filter(({ environment }) => environment === number)) {
      await ensureWitnessStates(
        pool,
        id,
        named.map(({ name }) => name),
      );
    }
  }
}

/** The quorums that apply in an environment: those with a member there. */
function quorumsOf(
  environment: number,
  quorums: readonly QuorumConfig[],
  configured: readonly WitnessSetup[],
): Quorum[] {
  const here = configured.map(({ witness: { name }, environments }) => ({ name, environments }));
  return quorums
    .map((quorum) => ({ threshold: quorum.threshold, members: membersIn(quorum, environment, here) }))
    .filter(({ members }) => members.length > 0);
}
