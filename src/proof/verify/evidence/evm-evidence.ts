/** Evidence of an EVM witness: the event of a contract, with SHA-256 of the checkpoint body. */
import { equalBytes } from '../../bytes/primitives.js';
import { type ChainVerdict, checkOnChain } from '../../evm/check.js';
import { ANCHOR_METHOD } from '../../evm/contract.js';
import { decodeEvmEvidence, type EvmEvidence, evmDetail } from '../../evm/evidence.js';
import type { JsonRpc } from '../../evm/json-rpc.js';
import { checkpointDigest } from '../../log/checkpoint.js';
import { endOfSecond } from '../instant.js';
import { problemOf } from '../read/read-json.js';
import { notChecked } from '../report.js';
import { isValidAt, type Trust, type TrustedContract } from '../trust.js';
import {
  type Evidence,
  type EvidenceSources,
  type Finding,
  refuted,
  unknownWitness,
  vouched,
  wrongName,
} from './evidence.js';

/** Of trust roots that do not say it. */
const DEFAULT_CONFIRMATIONS = 12;

/**
 * Checks evidence against the contracts of the trust roots, and against the chain if `evmRpc` has a node of it. Without
 * one, evidence that contradicts nothing is not checked. The node is believed.
 */
export async function checkEvm(
  evidence: Evidence,
  trust: Trust,
  { evmRpc }: EvidenceSources,
): Promise<Finding> {
  const record = decode(evidence);
  if ('check' in record) return record;
  if (!equalBytes(record.digest, checkpointDigest(evidence.checkpoint.note.text))) {
    return refuted(evidence, 'evm.digest', 'the event is of another checkpoint');
  }
  const contracts = trust.contracts.filter((contract) => isRecordedBy(contract, record));
  const own = contracts.filter(({ name }) => name === evidence.witness.name);
  if (own.length === 0) return checkUntrusted(evidence, trust, contracts);
  const time = endOfSecond(record.blockTimestamp);
  const trusted = own.find((contract) => isValidAt(contract, time));
  if (trusted === undefined) {
    return refuted(evidence, 'not_trusted_then', `it was not trusted at ${time.toISOString()}`);
  }
  const finding = vouched(evidence, time, evmDetail(record));
  if (finding.check.status === 'failed') return finding;
  return (await findContradiction(evidence, record, trusted, evmRpc?.(record.chainId))) ?? finding;
}

function decode(evidence: Evidence): EvmEvidence | Finding {
  try {
    return decodeEvmEvidence(evidence.witness.evidence);
  } catch (error) {
    return refuted(evidence, 'malformed', problemOf(error));
  }
}

function isRecordedBy({ chainId, address, method }: TrustedContract, record: EvmEvidence): boolean {
  return chainId === record.chainId && address === record.contract && method === ANCHOR_METHOD;
}

/** `contracts` are those that the evidence names, under the names of other witnesses. */
function checkUntrusted(evidence: Evidence, trust: Trust, contracts: readonly TrustedContract[]): Finding {
  if (contracts.length > 0) return wrongName(evidence);
  const isKnown = trust.contracts.some(({ name }) => name === evidence.witness.name);
  if (!isKnown) return unknownWitness(evidence);
  return refuted(evidence, 'evm.contract', 'the event is not of its contract in the trust roots');
}

/** Undefined if the chain has the event, under enough blocks. */
async function findContradiction(
  evidence: Evidence,
  record: EvmEvidence,
  { confirmations }: TrustedContract,
  rpc: JsonRpc | undefined,
): Promise<Finding | undefined> {
  const { chainId, transactionHash, blockNumber } = record;
  if (rpc === undefined) {
    const where = `transaction ${transactionHash} in block ${blockNumber}`;
    return open(evidence, 'no_rpc', `checking ${where} takes an RPC of chain ${chainId}`);
  }
  const verdict = await ask(rpc, record, confirmations || DEFAULT_CONFIRMATIONS);
  if (verdict.type === 'refuted') return refuted(evidence, `evm.${verdict.code}`, verdict.message);
  return verdict.type === 'unknown' ? open(evidence, 'not_checkable', verdict.message) : undefined;
}

async function ask(rpc: JsonRpc, record: EvmEvidence, confirmations: number): Promise<ChainVerdict> {
  try {
    return await checkOnChain(rpc, record, confirmations);
  } catch (error) {
    return { type: 'unknown', message: `the chain could not be checked: ${messageOf(error)}` };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown error';
}

function open({ witness }: Evidence, code: string, message: string): Finding {
  return { check: notChecked(`witness.evm.${code}`, `${witness.name}: ${message}`) };
}
