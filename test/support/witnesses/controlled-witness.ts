/** Time-stamping authorities in the test's process that the test holds up, breaks and sets to another time. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { openTimestampAuthority } from '../../../src/server/timestamp-authority/timestamp-authority.js';
import { rfc3161Witness } from '../../../src/server/witnessing/clients/rfc3161.js';
import type { WitnessSetup } from '../../../src/server/witnessing/set-up-witnesses.js';

/** How a witness answers the worker. */
export type ControlledWitness = {
  name: string;
  /** Leaves questions unanswered until `release`. */
  hold(): void;
  release(): void;
  /** Refuses every question. */
  isBroken: boolean;
  /** How far its clock is ahead. */
  clockOffsetMs: number;
};

/** Time-stamping authorities like the one of `attest up`, each with its own CA. */
export async function makeControlledWitnesses(
  dir: string,
  names: readonly string[],
  keysOf: Record<string, string>,
): Promise<{ names: ControlledWitness[]; setups: WitnessSetup[] }> {
  const made = await Promise.all(names.map((name) => makeWitness(join(dir, keysOf[name] ?? name), name)));
  return { names: made.map(({ witness }) => witness), setups: made.map(({ setup }) => setup) };
}

async function makeWitness(
  dir: string,
  name: string,
): Promise<{ witness: ControlledWitness; setup: WitnessSetup }> {
  const clock = () => new Date(Date.now() + witness.clockOffsetMs);
  let open = () => {};
  let opened = Promise.resolve();
  const witness: ControlledWitness = {
    name,
    isBroken: false,
    clockOffsetMs: 0,
    hold: () => {
      opened = new Promise((resolve) => {
        open = resolve;
      });
    },
    release: () => open(),
  };
  const authority = await openTimestampAuthority({ dir, clock, randomBytes });
  const { certChain, certChainPem, policyOid } = authority;
  const send = async (query: Uint8Array) => {
    if (witness.isBroken) throw new Error('the authority is out of order');
    await opened;
    return authority.respond(query);
  };
  const setup: WitnessSetup = {
    witness: rfc3161Witness({ send, randomBytes }, { name, chains: [certChain], policyOid }),
    kind: WitnessKind.RFC3161,
    environments: [Environment.LIVE, Environment.TEST],
    required: true,
    everyMs: 0,
    authority: { url: '', operator: 'self', certChainsPem: [certChainPem] },
  };
  return { witness, setup };
}
