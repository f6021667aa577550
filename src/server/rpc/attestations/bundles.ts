import type { JsonValue } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import { type ProofBundle, ProofBundleSchema } from '../../../../gen/attestation/v1/bundle_pb.js';
import { assembleBundle } from '../../../proof/bundle/bundle.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { inclusionProof, tilesForInclusion } from '../../../proof/log/tile-proof.js';
import type { StatementFields } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import type { SerializedResponse } from '../../core/call.js';
import { etagOf } from '../../core/etag.js';
import type { Principal } from '../../core/principal.js';
import { compileReader } from '../../json/reader.js';
import { compileSplicingWriter } from '../../json/writer.js';
import type { LogCache } from '../../logs/log-cache.js';
import type { Pool } from '../../store/database/connect.js';
import type { SubmissionRow } from '../../store/submissions/submissions.js';
import { type BatchProof, createBatchProofs } from './batch-proofs.js';
import { createProofTiles, type ProofTiles } from './proof-tiles.js';

/** A serialised bundle. Its message is parsed out of the JSON. */
export type SerializedBundle = SerializedResponse<ProofBundle> & { readonly logIndex: number };

/** Makes proof bundles, and caches the JSON of those made last. */
export type BundleReader = {
  /** The bundle of a submission whose batch is published. */
  read(row: SubmissionRow): Promise<SerializedBundle>;
  /** The same without the submission's row, if it is the caller's and was kept and still stands. */
  findCached(id: string, caller: Principal): Promise<SerializedBundle | undefined>;
};

/** A bundle as it was made: good for as long as its batch has the same evidence. The batch itself is not held on to. */
type CachedBundle = { bundle: SerializedBundle; proof: Omit<BatchProof, 'prepared' | 'texts'>; projectId: string };

const CACHE_BYTES = 16 * 1024 * 1024;
/** What a kept bundle takes besides its text. */
const OVERHEAD_BYTES = 1_500;

const write = compileSplicingWriter(ProofBundleSchema);
const readBundle = compileReader(ProofBundleSchema);

/**
 * A reader with caches that are right in any number of processes: tiles, which only grow, so that a cached one serves
 * every tree it is long enough for; what a batch's bundles share, which is looked at again after seconds; and whole
 * bundles, as long as that is the same. A bundle holds nothing that redaction or correction touches.
 *
 * @param clock monotonic milliseconds
 */
export function createBundleReader(pool: Pool, logCache: LogCache, clock: () => number): BundleReader {
  const tiles = createProofTiles(pool);
  const proofs = createBatchProofs(pool, clock);
  const cache = new LRUCache<string, CachedBundle>({ maxSize: CACHE_BYTES });
  const revalidate = async (kept: CachedBundle): Promise<SerializedBundle | undefined> => {
    const { log, treeSize } = kept.proof;
    return isCurrent(kept, await proofs.get(log, treeSize)) ? kept.bundle : undefined;
  };
  return {
    async read(row) {
      if (row.batchTreeSize === null) throw new Error(`submission ${row.id} is in no published batch`);
      const log = await logCache.getLog(row.logId);
      const proof = await proofs.get(log, row.batchTreeSize);
      const kept = cache.get(row.id);
      if (kept !== undefined && isCurrent(kept, proof)) return kept.bundle;
      const bytes = Buffer.from(write(await makeBundle(logCache, tiles, row, proof), proof.texts));
      const bundle = serializedBundle(bytes, row.logIndex);
      const size = bytes.length + OVERHEAD_BYTES;
      cache.set(row.id, { bundle, proof: validityOf(proof), projectId: row.projectId }, { size });
      return bundle;
    },
    async findCached(id, { projectId, environment }) {
      const kept = cache.get(id);
      if (kept?.projectId !== projectId || kept.proof.log.environment !== environment) return undefined;
      return clock() < kept.proof.freshUntilMs ? kept.bundle : revalidate(kept);
    },
  };
}

/** Whether a bundle is what would be made of it now; notes what was found, which need not be looked at again soon. */
function isCurrent(kept: CachedBundle, proof: BatchProof): boolean {
  if (kept.proof.evidence !== proof.evidence) return false;
  kept.proof = validityOf(proof);
  return true;
}

function serializedBundle(bytes: Buffer, logIndex: number): SerializedBundle {
  const json = { bytes, etag: etagOf(bytes) };
  return {
    json: () => json,
    message: () => readBundle(JSON.parse(bytes.toString()) as JsonValue),
    logIndex,
  };
}

function validityOf({ log, treeSize, evidence, freshUntilMs }: BatchProof): CachedBundle['proof'] {
  return { log, treeSize, evidence, freshUntilMs };
}

async function makeBundle(
  logCache: LogCache,
  tiles: ProofTiles,
  row: SubmissionRow,
  { log, prepared }: BatchProof,
): Promise<ProofBundle> {
  const { logIndex, signature } = row;
  const sizes = prepared.checkpoints.map(({ size }) => size);
  const { spki } = await logCache.getDsseKey(row.dsseKeyId);
  const readTile = await tiles.load(
    log.id,
    sizes.flatMap((size) => tilesForInclusion(logIndex, size)),
  );
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
    environment: environmentName(environment),
    schema: row.attestedSchema ?? row.schema,
    commitment: toHex(row.commitment),
  };
}
