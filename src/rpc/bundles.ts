import { LRUCache } from 'lru-cache';
import { type ProofBundle, WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { assembleBundle, LOG_WITNESS_NAME, type WitnessParts } from '../proof/bundle.js';
import { toHex } from '../proof/encoding.js';
import type { StatementFields } from '../proof/statement.js';
import type { ReadTile } from '../proof/tile.js';
import { inclusionProof, tilesForInclusion } from '../proof/tile-proof.js';
import type { BatchRow } from '../store/batches.js';
import { findBatchBySize } from '../store/batches.js';
import type { Pool } from '../store/connect.js';
import type { Log } from '../store/logs.js';
import type { SubmissionRow } from '../store/submissions.js';
import { readTiles } from '../store/tiles.js';
import { findCoveringEvidence } from '../store/witnesses.js';
import type { Directory } from './directory.js';

/** What is the same for every bundle of a batch: its checkpoint, later ones that witnesses vouched for, the evidence. */
type BatchProof = {
  batch: BatchRow;
  checkpoints: { treeSize: number; note: string }[];
  witnesses: WitnessParts[];
};

/** Makes proof bundles. */
export type BundleReader = {
  /** The bundle of a submission whose batch is published. */
  read(row: SubmissionRow): Promise<ProofBundle>;
};

/** Evidence of slow witnesses shows in bundles after at most this long. */
const BATCH_PROOF_TTL_MS = 5_000;
const BATCHES_CACHED = 500;
/** 8 KiB each. */
const TILES_CACHED = 500;
/** About 20 KiB each, with their text. */
const BUNDLES_CACHED = 750;

/**
 * A reader with caches that are right in any number of processes: tiles, which only grow, so that a cached one serves
 * every tree it is long enough for; what a batch's bundles share, for a few seconds; and whole bundles, as long as
 * what their batch shares has not changed. A bundle holds nothing that redaction or correction touches.
 */
export function createBundleReader(pool: Pool, directory: Directory): BundleReader {
  const tiles = new LRUCache<string, Uint8Array>({ max: TILES_CACHED });
  const findProof = cachedProofs(pool);
  const bundles = new LRUCache<string, { proof: BatchProof; bundle: ProofBundle }>({ max: BUNDLES_CACHED });
  return {
    async read(row) {
      if (row.batchTreeSize === null) throw new Error(`submission ${row.id} is in no published batch`);
      const log = await directory.getLog(row.logId);
      const proof = await findProof(log, row.batchTreeSize);
      const cached = bundles.get(row.id);
      if (cached?.proof === proof) return cached.bundle;
      const { spki } = await directory.getDsseKey(row.dsseKeyId);
      const sizes = proof.checkpoints.map((checkpoint) => checkpoint.treeSize);
      const readTile = await loadTiles(pool, tiles, log.id, row.logIndex, sizes);
      const bundle = Object.freeze(assembleBundle(bundleParts(row, log, spki, proof, readTile)));
      bundles.set(row.id, { proof, bundle });
      return bundle;
    },
  };
}

function bundleParts(
  row: SubmissionRow,
  log: Log,
  dsseKey: Uint8Array,
  proof: BatchProof,
  readTile: ReadTile,
) {
  return {
    statement: statementOf(row, log.environment),
    signature: row.signature,
    dsseKey,
    logIndex: row.logIndex,
    logKey: log.publicKey,
    batch: proof.batch,
    checkpoints: proof.checkpoints.map(({ treeSize, note }) => ({
      note,
      inclusionProof: inclusionProof(row.logIndex, treeSize, readTile),
    })),
    witnesses: proof.witnesses,
  };
}

/** Reads what a batch's bundles share at most every few seconds; the same object stands for it until it changes. */
function cachedProofs(pool: Pool): (log: Log, treeSize: number) => Promise<BatchProof> {
  const known = new LRUCache<string, BatchProof>({ max: BATCHES_CACHED });
  const fresh = new LRUCache<string, Promise<BatchProof>>({ max: BATCHES_CACHED, ttl: BATCH_PROOF_TTL_MS });
  const read = async (key: string, log: Log, treeSize: number): Promise<BatchProof> => {
    const proof = await readBatchProof(pool, log, treeSize);
    const before = known.get(key);
    if (before !== undefined && isSameProof(before, proof)) return before;
    known.set(key, proof);
    return proof;
  };
  return (log, treeSize) => {
    const key = `${log.id}/${treeSize}`;
    const cached = fresh.get(key);
    if (cached !== undefined) return cached;
    const reading = read(key, log, treeSize);
    fresh.set(key, reading);
    reading.catch(() => fresh.delete(key));
    return reading;
  };
}

/** Evidence is only ever added, and named by its witness and size. */
function isSameProof(a: BatchProof, b: BatchProof): boolean {
  const names = ({ witnesses }: BatchProof) =>
    witnesses.map(({ name, treeSize }) => `${name} ${treeSize}`).join();
  return names(a) === names(b);
}

/** The statement a submission was attested by. */
export function statementOf(row: SubmissionRow, environment: number): StatementFields {
  return {
    artifactSha256: toHex(row.artifactSha256),
    submissionId: row.id,
    project: row.projectId,
    submittedAt: row.submittedAt.toISOString(),
    environment: environment === Environment.LIVE ? 'live' : 'test',
    schema: row.attestedSchema ?? row.schema,
    commitment: toHex(row.commitment),
  };
}

async function readBatchProof(pool: Pool, log: Log, treeSize: number): Promise<BatchProof> {
  const batch = await findBatchBySize(pool, log.id, treeSize);
  if (batch === undefined) throw new Error(`log ${log.origin} has no batch that ends at ${treeSize}`);
  const evidence = await findCoveringEvidence(pool, log.id, treeSize);
  const later = [...new Set(evidence.map((piece) => piece.treeSize))]
    .filter((size) => size > treeSize)
    .sort((a, b) => a - b);
  const laterBatches = await Promise.all(later.map((size) => findBatchBySize(pool, log.id, size)));
  const checkpoints = [batch, ...laterBatches.filter((found) => found !== undefined)];
  const landed = evidence.map(({ witness, ...piece }) => ({ ...piece, name: witness }));
  return { batch, checkpoints, witnesses: [logWitness(batch), ...landed] };
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

async function loadTiles(
  pool: Pool,
  cache: LRUCache<string, Uint8Array>,
  logId: number,
  index: number,
  sizes: readonly number[],
): Promise<ReadTile> {
  const keyOf = (place: { level: number; index: number }) => `${logId}/${place.level}/${place.index}`;
  const needed = sizes.flatMap((size) => tilesForInclusion(index, size));
  const missing = needed.filter((place) => (cache.get(keyOf(place))?.length ?? 0) < place.width * 32);
  const own = new Map<string, Uint8Array>();
  for (const tile of await readTiles(pool, logId, missing)) {
    own.set(keyOf(tile), tile.hashes);
    cache.set(keyOf(tile), tile.hashes);
  }
  return (level, tileIndex) => {
    const key = keyOf({ level, index: tileIndex });
    return own.get(key) ?? cache.get(key);
  };
}
