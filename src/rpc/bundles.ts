import { LRUCache } from 'lru-cache';
import { type ProofBundle, ProofBundleSchema } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { etagOf } from '../etag.js';
import { compileLazyMessage } from '../json/lazy-message.js';
import { compileWriter } from '../json/writer.js';
import type { Principal } from '../principal.js';
import { assembleBundle } from '../proof/bundle.js';
import { toHex } from '../proof/encoding.js';
import type { StatementFields } from '../proof/statement.js';
import type { ReadTile } from '../proof/tile.js';
import { inclusionProof, tilesForInclusion } from '../proof/tile-proof.js';
import type { Pool } from '../store/connect.js';
import type { SubmissionRow } from '../store/submissions.js';
import { readTiles } from '../store/tiles.js';
import { type BatchProof, createBatchProofs } from './batch-proofs.js';
import type { Directory } from './directory.js';

/** A bundle, and the same as REST spells it. */
export type WrittenBundle = {
  readonly message: ProofBundle;
  readonly bytes: Buffer;
  readonly logIndex: number;
};

/** Makes proof bundles, and keeps those made last as they are spelled on REST. */
export type BundleReader = {
  /** The bundle of a submission whose batch is published. */
  read(row: SubmissionRow): Promise<WrittenBundle>;
  /** The same without the submission's row, if it is the caller's and was kept and still stands. */
  findKept(id: string, caller: Principal): Promise<WrittenBundle | undefined>;
};

/** A bundle as it was made: good for as long as what its batch shares is the same. */
type Kept = { bundle: WrittenBundle; proof: BatchProof; projectId: string };

/** 8 KiB each, and as much again for the nodes above its hashes. */
const TILES_CACHED = 400;
const KEPT_BYTES = 20 * 1024 * 1024;
/** What a kept bundle takes besides its text. */
const KEPT_OVERHEAD_BYTES = 1_500;

const write = compileWriter(ProofBundleSchema);
const lazyBundle = compileLazyMessage(ProofBundleSchema);

/**
 * A reader with caches that are right in any number of processes: tiles, which only grow, so that a cached one serves
 * every tree it is long enough for; what a batch's bundles share, which is looked at again after seconds; and whole
 * bundles, as long as that is the same. A bundle holds nothing that redaction or correction touches.
 *
 * @param clock monotonic milliseconds
 */
export function createBundleReader(pool: Pool, directory: Directory, clock: () => number): BundleReader {
  const tiles = new LRUCache<string, Uint8Array>({ max: TILES_CACHED });
  const proofs = createBatchProofs(pool, clock);
  const keptBundles = new LRUCache<string, Kept>({ maxSize: KEPT_BYTES });
  return {
    async read(row) {
      if (row.batchTreeSize === null) throw new Error(`submission ${row.id} is in no published batch`);
      const log = await directory.getLog(row.logId);
      const proof = await proofs.get(log, row.batchTreeSize);
      const kept = keptBundles.get(row.id);
      if (kept?.proof === proof) return kept.bundle;
      const bytes = Buffer.from(write(await makeBundle(pool, directory, tiles, row, proof)));
      const bundle = { message: lazyBundle({ bytes, etag: etagOf(bytes) }), bytes, logIndex: row.logIndex };
      const size = bytes.length + KEPT_OVERHEAD_BYTES;
      keptBundles.set(row.id, { bundle, proof, projectId: row.projectId }, { size });
      return bundle;
    },
    async findKept(id, { projectId, environment }) {
      const kept = keptBundles.get(id);
      if (kept?.projectId !== projectId) return undefined;
      const { log, treeSize, freshUntilMs } = kept.proof;
      if (log.environment !== environment) return undefined;
      const isSame = clock() < freshUntilMs || (await proofs.get(log, treeSize)) === kept.proof;
      return isSame ? kept.bundle : undefined;
    },
  };
}

async function makeBundle(
  pool: Pool,
  directory: Directory,
  tiles: LRUCache<string, Uint8Array>,
  row: SubmissionRow,
  { log, prepared }: BatchProof,
): Promise<ProofBundle> {
  const { logIndex, signature } = row;
  const sizes = prepared.checkpoints.map(({ size }) => size);
  const { spki } = await directory.getDsseKey(row.dsseKeyId);
  const readTile = await loadTiles(pool, tiles, log.id, logIndex, sizes);
  return assembleBundle(prepared, {
    statement: statementOf(row, log.environment),
    signature,
    dsseKey: spki,
    logIndex,
    inclusionProofs: sizes.map((size) => inclusionProof(logIndex, size, readTile)),
  });
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
