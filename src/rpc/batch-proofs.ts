import { LRUCache } from 'lru-cache';
import { BatchStatus } from '../../gen/attestation/v1/batches_pb.js';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { LOG_WITNESS_NAME, type PreparedBatch, prepareBatch, type WitnessParts } from '../proof/bundle.js';
import { type BatchRow, findBatchBySize } from '../store/batches.js';
import type { Pool } from '../store/connect.js';
import type { Log } from '../store/logs.js';
import { listPolicies } from '../store/policies.js';
import { findCoveringEvidence } from '../store/witnesses.js';

/** What the bundles of a batch share. The same object stands for it until evidence is added. */
export type BatchProof = {
  readonly log: Log;
  readonly treeSize: number;
  readonly prepared: PreparedBatch;
  /** Which evidence it holds: evidence is only ever added, and named by its witness and size. */
  readonly evidence: string;
  /** Until when nobody looks whether there is more, in milliseconds of the clock. */
  freshUntilMs: number;
};

/** Finds what the bundles of the batch that ends at `treeSize` share. */
export type BatchProofs = { get(log: Log, treeSize: number): Promise<BatchProof> };

/** Evidence of slow witnesses shows in bundles after at most this long. */
const OPEN_MS = 5_000;
/** Nor is anything expected of a batch that each witness of its policy has vouched for; one that is new may, later. */
const COMPLETE_MS = 60_000;
/** About 10 KiB each. */
const BATCHES_CACHED = 500;

/** @param clock monotonic milliseconds */
export function createBatchProofs(pool: Pool, clock: () => number): BatchProofs {
  const known = new LRUCache<string, BatchProof>({ max: BATCHES_CACHED });
  const underWay = new Map<string, Promise<BatchProof>>();
  const read = async (key: string, log: Log, treeSize: number): Promise<BatchProof> => {
    const proof = await readBatchProof(pool, log, treeSize, clock());
    const before = known.get(key);
    if (before?.evidence === proof.evidence) {
      before.freshUntilMs = proof.freshUntilMs;
      return before;
    }
    known.set(key, proof);
    return proof;
  };
  return {
    async get(log, treeSize) {
      const key = `${log.id}/${treeSize}`;
      const cached = known.get(key);
      if (cached !== undefined && clock() < cached.freshUntilMs) return cached;
      const reading = underWay.get(key) ?? read(key, log, treeSize).finally(() => underWay.delete(key));
      underWay.set(key, reading);
      return reading;
    },
  };
}

async function readBatchProof(pool: Pool, log: Log, treeSize: number, nowMs: number): Promise<BatchProof> {
  const [batch, evidence, policies] = await Promise.all([
    findBatchBySize(pool, log.id, treeSize),
    findCoveringEvidence(pool, log.id, treeSize),
    listPolicies(pool),
  ]);
  if (batch === undefined) throw new Error(`log ${log.origin} has no batch that ends at ${treeSize}`);
  const later = [...new Set(evidence.map((piece) => piece.treeSize))]
    .filter((size) => size > treeSize)
    .sort((a, b) => a - b);
  const laterBatches = await Promise.all(later.map((size) => findBatchBySize(pool, log.id, size)));
  const policy = policies.find((p) => p.environment === log.environment && p.version === batch.policyVersion);
  const isComplete =
    batch.status === BatchStatus.WITNESSED &&
    policy?.witnesses.every(({ name, kind }) => hasVouched(name, kind, evidence));
  return {
    log,
    treeSize,
    prepared: prepareBatch({
      batch,
      logKey: log.publicKey,
      notes: [batch, ...laterBatches.filter((found) => found !== undefined)].map(({ note }) => note),
      witnesses: [
        logWitness(batch),
        ...evidence.map(({ witness, ...piece }) => ({ ...piece, name: witness })),
      ],
    }),
    evidence: evidence.map((piece) => `${piece.witness} ${piece.treeSize}`).join(),
    freshUntilMs: nowMs + (isComplete ? COMPLETE_MS : OPEN_MS),
  };
}

function hasVouched(name: string, kind: number, evidence: readonly { witness: string }[]): boolean {
  return kind === WitnessKind.TRANSPARENCY_LOG || evidence.some(({ witness }) => witness === name);
}

/** The log's own vouching: its signed checkpoint, which lands when the batch is published. */
function logWitness(batch: BatchRow): WitnessParts {
  return {
    name: LOG_WITNESS_NAME,
    kind: WitnessKind.TRANSPARENCY_LOG,
    treeSize: batch.treeSize,
    evidence: Buffer.from(batch.note),
    detail: { log_index: batch.firstIndex },
    landedAt: batch.registeredAt ?? batch.sealedAt,
  };
}
