import { create } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import { BatchStatus } from '../../../../../gen/attestation/v1/batches_pb.js';
import { ProofBundleSchema, WitnessKind } from '../../../../../gen/attestation/v1/bundle_pb.js';
import {
  LOG_WITNESS_NAME,
  type PreparedBatch,
  prepareBatch,
  type WitnessParts,
} from '../../../../proof/bundle/bundle.js';
import { compileFieldWriter } from '../../../json/codec.js';
import { asFields } from '../../../json/message-codec.js';
import { createBatchLoader } from '../../../store/database/batch-loader.js';
import type { Pool } from '../../../store/database/connect.js';
import type { BatchRow } from '../../../store/log/batches.js';
import type { Log } from '../../../store/log/logs.js';
import { listPolicies, type Policy } from '../../../store/witnesses/policies.js';
import { type CoveredBatch, type Covering, findCoveredBatches } from '../../../store/witnesses/witnesses.js';
import { type BatchTexts, type BatchValues, batchValues } from './bundle-template.js';

/** What the bundles of a batch share. */
export type BatchProof = BatchValues & {
  readonly log: Log;
  readonly treeSize: number;
  /** The witness and tree size of each piece of evidence. Evidence is only ever added. */
  readonly evidence: string;
  /** When to look for further evidence, in milliseconds of the clock. */
  readonly freshUntilMs: number;
};

/** A published batch, and its evidence. */
export type LoadedBatch = {
  readonly log: Log;
  readonly batch: Pick<BatchRow, 'id' | 'status' | 'witnessedAt'>;
  readonly prepared: PreparedBatch;
  readonly texts: BatchTexts;
  readonly evidence: string;
  /** Whether every witness of the batch's policy has vouched for it. */
  readonly isComplete: boolean;
};

/** Reads what the bundles of the batch that ends at `treeSize` share. */
type BatchProofs = { get(log: Log, treeSize: number): Promise<BatchProof> };

/** Evidence of slow witnesses is in bundles after at most this long. */
const TTL_MS = 5_000;
/** The same for a batch that every witness of its policy has vouched for: only a new witness may add evidence. */
const COMPLETE_TTL_MS = 60_000;
/** Some 5,000 batches with one time stamp each: of 10 million submissions at 2,000 a second, all. */
const CACHE_BYTES = 32 * 1024 * 1024;
/** Memory that a batch takes beside its JSON. */
const OVERHEAD_BYTES = 1_500;
const LOADING = { maxKeys: 50, maxInFlight: 2 };

const writeBatch = compileFieldWriter(ProofBundleSchema.field.batch);
const writeWitnesses = compileFieldWriter(ProofBundleSchema.field.witnesses);

/** An empty cache. @param clock monotonic milliseconds */
export function createBatchProofs(pool: Pool, clock: () => number): BatchProofs {
  const load = createBatchReader(pool, clock);
  const cache = new LRUCache<string, BatchProof>({ maxSize: CACHE_BYTES });
  const readsInFlight = new Map<string, Promise<BatchProof>>();
  const read = async (key: string, log: Log, treeSize: number): Promise<BatchProof> => {
    const { prepared, texts, evidence, isComplete } = await load(log, treeSize);
    const values = batchValues(prepared, texts);
    const freshUntilMs = clock() + (isComplete ? COMPLETE_TTL_MS : TTL_MS);
    const proof = { ...values, log, treeSize, evidence, freshUntilMs };
    const size = values.values.reduce((sum, { length }) => sum + length, OVERHEAD_BYTES);
    cache.set(key, proof, { size });
    return proof;
  };
  return {
    async get(log, treeSize) {
      const key = keyOf({ logId: log.id, treeSize });
      const cached = cache.get(key);
      if (cached !== undefined && clock() < cached.freshUntilMs) return cached;
      const reading =
        readsInFlight.get(key) ?? read(key, log, treeSize).finally(() => readsInFlight.delete(key));
      readsInFlight.set(key, reading);
      return reading;
    },
  };
}

/** Creates a reader of batches; it keeps none. @param clock monotonic milliseconds */
export function createBatchReader(pool: Pool, clock: () => number) {
  const sources = createSources(pool, clock);
  return (log: Log, treeSize: number): Promise<LoadedBatch> => loadBatch(sources, log, treeSize);
}

/** Look-ups of the tables; those of batches are gathered. */
type Sources = {
  findBatch: (key: string) => Promise<CoveredBatch | undefined>;
  policies: () => Promise<Policy[]>;
};

function createSources(pool: Pool, clock: () => number): Sources {
  let policies: { rows: Promise<Policy[]>; untilMs: number } | undefined;
  return {
    findBatch: createBatchLoader(async (keys) => {
      const found = await findCoveredBatches(pool, keys.map(endOf));
      return new Map(found.map((covered) => [keyOf(covered.batch), covered]));
    }, LOADING),
    policies: () => {
      if (policies === undefined || clock() >= policies.untilMs) {
        const rows = listPolicies(pool);
        policies = { rows, untilMs: clock() + TTL_MS };
        rows.catch(() => {
          policies = undefined;
        });
      }
      return policies.rows;
    },
  };
}

function keyOf({ logId, treeSize }: { logId: number; treeSize: number }): string {
  return `${logId}/${treeSize}`;
}

function endOf(key: string) {
  const [logId = 0, treeSize = 0] = key.split('/').map(Number);
  return { logId, treeSize };
}

async function loadBatch(
  { findBatch, policies: readPolicies }: Sources,
  log: Log,
  treeSize: number,
): Promise<LoadedBatch> {
  const ofSize = (size: number) => findBatch(keyOf({ logId: log.id, treeSize: size }));
  const [found, policies] = await Promise.all([ofSize(treeSize), readPolicies()]);
  if (found === undefined) throw new Error(`log ${log.origin} has no batch that ends at ${treeSize}`);
  const { batch, evidence } = found;
  const later = [...new Set(evidence.map((piece) => piece.treeSize))]
    .filter((size) => size > treeSize)
    .sort((a, b) => a - b);
  const laterBatches = await Promise.all(later.map(ofSize));
  const policy = policies.find((p) => p.environment === log.environment && p.version === batch.policyVersion);
  const isComplete =
    batch.status === BatchStatus.WITNESSED &&
    policy?.witnesses.every(({ name, kind }) => hasEvidence(name, kind, evidence));
  const prepared = prepareBatch({
    batch,
    logKey: log.publicKey,
    notes: [batch, ...laterBatches.flatMap((one) => one?.batch ?? [])].map(({ note }) => note),
    witnesses: [logWitness(batch), ...evidence.map(witnessParts)],
  });
  return {
    log,
    batch,
    prepared,
    texts: sharedTexts(prepared),
    evidence: evidence.map((piece) => `${piece.witness} ${piece.treeSize}`).join(),
    isComplete: isComplete === true,
  };
}

/** Serialises what all of a batch's bundles have in common. */
export function sharedTexts({ batch, witnesses }: PreparedBatch): BatchTexts {
  const message = asFields(create(ProofBundleSchema, { batch, witnesses: [...witnesses] }));
  return { batch: writeBatch(message), witnesses: writeWitnesses(message) };
}

function hasEvidence(name: string, kind: number, evidence: readonly { witness: string }[]): boolean {
  return kind === WitnessKind.TRANSPARENCY_LOG || evidence.some(({ witness }) => witness === name);
}

function witnessParts({ witness, kind, treeSize, evidence, detail, landedAt }: Covering): WitnessParts {
  return { name: witness, kind, treeSize, evidence, detail, landedAt };
}

/** The log as a witness: its signed checkpoint, which lands when the batch is published. */
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
