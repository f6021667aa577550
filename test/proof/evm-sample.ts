/** The good bundle with evidence of an EVM witness over its later checkpoint, on a chain of its own. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { toBase64, utf8 } from '../../src/proof/bytes/encoding.js';
import { decodeEvmEvidence, type EvmEvidence } from '../../src/proof/evm/evidence.js';
import { parseCheckpoint } from '../../src/proof/log/checkpoint.js';
import type { Anvil } from '../support/witnesses/evm/anvil.js';
import { ask, checkpointOf, evmScene, pollUntilLanded } from '../support/witnesses/evm/scene.js';
import { LATER_SIZE } from './sample.js';
import { type Bundle, changed, good, rootsOf, service } from './verifying.js';

export type EvmSample = {
  anvil: Anvil;
  evidence: EvmEvidence;
  /** The good bundle with the evidence, changed. */
  withChain(change?: (witness: Bundle['witnesses'][number]) => unknown): JsonObject;
  /** Trust roots in which authority and contract are required; the contract's entry may be changed. */
  roots(change?: object): JsonObject;
};

/** Records the later checkpoint of the good bundle. */
export async function makeEvmSample(t: Pick<Test, 'teardown'>): Promise<EvmSample> {
  const scene = await evmScene(t);
  const { anvil, contract } = scene;
  const [, later] = (good as unknown as Bundle).checkpoints;
  const checkpoint = { ...checkpointOf(LATER_SIZE), body: utf8(parseCheckpoint(later!.note).note.text) };
  const witness = scene.witness();
  const landed = await pollUntilLanded(anvil, witness, await ask(witness, checkpoint), checkpoint);
  const trusted = {
    chainId: BigInt(anvil.chainId),
    address: contract,
    name: 'chain',
    method: 'anchor',
    confirmations: 2,
  };
  const policies = [{ environment: Environment.LIVE, version: 1, required: ['tsa', 'chain'] }];
  return {
    anvil,
    evidence: decodeEvmEvidence(landed.evidence),
    withChain: (change = () => {}) =>
      changed(({ witnesses }) => {
        const detail = { ...landed.detail };
        const base = {
          name: 'chain',
          kind: 'evm',
          tree_size: LATER_SIZE,
          landed_at: '2025-06-07T12:10:00.000Z',
        };
        const entry = { ...base, evidence: toBase64(landed.evidence), detail };
        change(entry);
        witnesses.push(entry);
      }),
    roots: (change = {}) => rootsOf(service, { policies, evmContracts: [{ ...trusted, ...change }] }),
  };
}
