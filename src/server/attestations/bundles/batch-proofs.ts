import { create } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import { ProofBundleSchema, WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import {
  LOG_WITNESS_NAME,
  type PreparedBatch,
  prepareBatch,
  type WitnessParts,
} from '../../../proof/bundle/bundle.js';
import { createBatchLoader } from '../../database/batch-loader.js';
import type { Pool } from '../../database/connect.js';
import { compileFieldWriter } from '../../json/codec.js';
import { asFields } from '../../json/message-codec.js';
import type { BatchRow } from '../../log/store/batches.js';
import type { Log } from '../../log/store/logs.js';
import {
  type CoveredBatch,
  type Covering,
  findCoveredBatches,
  listWitnessStates,
  type WitnessState,
} from '../../witnessing/store/witnesses.js';
import { type BatchTexts, type BatchValues, batchValues } from './bundle-template.js';

/** What the bundles of a batch share. */
export type BatchProof = BatchValues & {
  readonly log: Log;
  readonly treeSize: number;
  /** The witness and tree size of each piece of evidence. Evidence is only ever added. */
  readonly evidence: string;
  /** The witnesses that it is by. */
  readonly vouchedBy: readonly string[];
  /** When to look for evidence by others, in milliseconds of the clock. */
  freshUntilMs: number;
  /** When to read the batch again, in milliseconds of the clock. */
  readonly keptUntilMs: number;
};

/** A published batch, and its evidence. */
export type LoadedBatch = {
  readonly log: Log;
  readonly batch: Pick<BatchRow, 'id' | 'status' | 'witnessedAt'>;
  readonly prepared: PreparedBatch;
  readonly texts: BatchTexts;
  readonly evidence: string;
  readonly vouchedBy: readonly string[];
};

/** Reads what the bundles of the batch that ends at `treeSize` share. */
type BatchProofs = { get(log: Log, treeSize: number): Promise<BatchProof> };

/** Evidence of slow witnesses is in bundles after at most this long. */
const TTL_MS = 5_000;
/** Evidence for an earlier checkpoint that lands after that for a later one, and takes its place, after at most this long. */
const KEPT_MS = 600_000;
/** Some 5,000 batches with one time stamp each: of 10 million submissions at 2,000 a second, all. */
const CACHE_BYTES = 32 * 1024 * 1024;
/** Memory that a batch takes beside its JSON. */
const OVERHEAD_BYTES = 1_500;
const LOADING = { maxKeys: 50, maxInFlight: 2 };

const writeBatch = compileFieldWriter(ProofBundleSchema.field.batch);
const writeWitnesses = compileFieldWriter(ProofBundleSchema.field.witnesses);

/** An empty cache. @param clock monotonic milliseconds */
export function createBatchProofs(pool: Pool, clock: () => number): BatchProofs {
  const load = createBatchReader(pool);
  const readStates = createStateReader(pool, clock);
  const cache = new LRUCache<string, BatchProof>({ maxSize: CACHE_BYTES });
  const readsInFlight = new Map<string, Promise<BatchProof>>();
  const read = async (key: string, log: Log, treeSize: number): Promise<BatchProof> => {
    const nowMs = clock();
    const { prepared, texts, evidence, vouchedBy } = await load(log, treeSize);
    const values = batchValues(prepared, texts);
    const times = { freshUntilMs: nowMs + TTL_MS, keptUntilMs: nowMs + KEPT_MS };
    const proof = { ...values, log, treeSize, evidence, vouchedBy, ...times };
    const size = values.values.reduce((sum, { length }) => sum + length, OVERHEAD_BYTES);
    cache.set(key, proof, { size });
    return proof;
  };
  const revalidate = async (key: string, cached: BatchProof): Promise<BatchProof> => {
    const { log, treeSize, keptUntilMs } = cached;
    const { states, untilMs } = readStates(log.id);
    if (clock() >= keptUntilMs || !isVouchedByAll(cached, await states)) return read(key, log, treeSize);
    cached.freshUntilMs = untilMs;
    return cached;
  };
  return {
    async get(log, treeSize) {
      const key = keyOf({ logId: log.id, treeSize });
      const cached = cache.get(key);
      if (cached !== undefined && clock() < cached.freshUntilMs) return cached;
      const inFlight = readsInFlight.get(key);
      if (inFlight !== undefined) return inFlight;
      const found = cached === undefined ? read(key, log, treeSize) : revalidate(key, cached);
      const reading = found.finally(() => readsInFlight.delete(key));
      readsInFlight.set(key, reading);
      return reading;
    },
  };
}

/** Whether every witness that has vouched for a checkpoint at or after a batch's end is one of those that its evidence is by. */
function isVouchedByAll(
  { treeSize, vouchedBy }: Pick<BatchProof, 'treeSize' | 'vouchedBy'>,
  states: readonly Pick<WitnessState, 'witness' | 'coversTreeSize'>[],
): boolean {
  return states.every(
    ({ witness, coversTreeSize }) => coversTreeSize < treeSize || vouchedBy.includes(witness),
  );
}

type ReadStates = { states: Promise<WitnessState[]>; untilMs: number };

/** Creates a reader of how far a log's witnesses are. It reads each log's once in {@link TTL_MS}. */
function createStateReader(pool: Pool, clock: () => number): (logId: number) => ReadStates {
  const known = new Map<number, ReadStates>();
  return (logId) => {
    const last = known.get(logId);
    if (last !== undefined && clock() < last.untilMs) return last;
    const read = { states: listWitnessStates(pool, logId), untilMs: clock() + TTL_MS };
    known.set(logId, read);
    read.states.catch(() => known.delete(logId));
    return read;
  };
}

/** Creates a reader of batches; it keeps none. */
export function createBatchReader(pool: Pool) {
  const findBatch = createBatchLoader(async (keys) => {
    const found = await findCoveredBatches(pool, keys.map(endOf));
    return new Map(found.map((covered) => [keyOf(covered.batch), covered]));
  }, LOADING);
  return (log: Log, treeSize: number): Promise<LoadedBatch> => loadBatch(findBatch, log, treeSize);
}

function keyOf({ logId, treeSize }: { logId: number; treeSize: number }): string {
  return `${logId}/${treeSize}`;
}

function endOf(key: string) {
  const [logId = 0, treeSize = 0] = key.split('/').map(Number);
  return { logId, treeSize };
}

async function loadBatch(
  findBatch: (key: string) => Promise<CoveredBatch | undefined>,
  log: Log,
  treeSize: number,
): Promise<LoadedBatch> {
  const ofSize = (size: number) => findBatch(keyOf({ logId: log.id, treeSize: size }));
  const found = await ofSize(treeSize);
  if (found === undefined) throw new Error(`log ${log.origin} has no batch that ends at ${treeSize}`);
  const { batch, evidence } = found;
  const later = [...new Set(evidence.map((piece) => piece.treeSize))]
    .filter((size) => size > treeSize)
    .sort((a, b) => a - b);
  const laterBatches = await Promise.all(later.map(ofSize));
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
    vouchedBy: evidence.map(({ witness }) => witness),
  };
}

/** Serialises what all of a batch's bundles have in common. */
export function sharedTexts({ batch, witnesses }: PreparedBatch): BatchTexts {
  const message = asFields(create(ProofBundleSchema, { batch, witnesses: [...witnesses] }));
  return { batch: writeBatch(message), witnesses: writeWitnesses(message) };
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
