import type { JsonValue } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import { type ProofBundle, ProofBundleSchema } from '../../../../gen/attestation/v1/bundle_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import type { StatementFields } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import type { SerializedResponse } from '../../core/call.js';
import { etagOf } from '../../core/http/etag.js';
import type { Principal } from '../../core/principal.js';
import type { Pool } from '../../database/connect.js';
import { compileReader } from '../../json/codec.js';
import type { LogCache } from '../../log/log-cache.js';
import type { SubmissionRow } from '../submissions/submissions.js';
import { type BatchProof, createBatchProofs } from './batch-proofs.js';
import { createBundleWriter } from './bundle-template.js';
import { createProofTiles, type ProofTiles } from './proof-tiles.js';

/**
 * A serialised bundle: its JSON as `bytes`, which `json` hashes when it is first called. Its message is parsed from the JSON.
 * `isCached`: whether later reads return the same object.
 */
export type SerializedBundle = SerializedResponse<ProofBundle> & {
  readonly bytes: Uint8Array;
  readonly logIndex: number;
  readonly isCached: boolean;
};

/** Renders proof bundles and caches the JSON of those that are read again. */
export type BundleReader = {
  /** Reads the bundle of a submission. Its batch must be published. */
  read(row: SubmissionRow): Promise<SerializedBundle>;
  /** Looks up a cached bundle. Returns undefined if it is not cached, not current, or not the caller's. */
  findCached(id: string, caller: Principal): Promise<SerializedBundle | undefined>;
};

/** A cached bundle. Current while its batch has the same evidence. */
type CachedBundle = {
  bundle: SerializedBundle;
  proof: Pick<BatchProof, 'log' | 'treeSize' | 'evidence' | 'freshUntilMs'>;
  projectId: string;
};

const CACHE_BYTES = 16 * 1024 * 1024;
/**
 * Bundles are cached when they are read again: most are read once, and one that is cached until it is evicted lives long
 * enough for the old generation of the heap; it takes the process 100 µs, not 75.
 */
const READ_ONCE = 4_096;
/** Memory that a cached bundle takes beside its JSON. */
const OVERHEAD_BYTES = 1_500;

const readBundle = compileReader(ProofBundleSchema);

/**
 * A reader whose caches are correct with any number of processes: tiles, which only grow; what the bundles of a batch
 * share, revalidated after seconds; and bundles, current while that is unchanged. Redaction and correction do not change
 * bundles.
 *
 * @param clock monotonic milliseconds
 */
export function createBundleReader(
  pool: Pool,
  logCache: LogCache,
  clock = () => performance.now(),
): BundleReader {
  const render = createBundleRenderer({ logCache, tiles: createProofTiles(pool) });
  const proofs = createBatchProofs(pool, clock);
  const cache = new LRUCache<string, CachedBundle>({ maxSize: CACHE_BYTES });
  const readOnce = new LRUCache<string, true>({ max: READ_ONCE });
  const revalidate = async (cached: CachedBundle): Promise<SerializedBundle | undefined> => {
    const { log, treeSize } = cached.proof;
    return isCurrent(cached, await proofs.get(log, treeSize)) ? cached.bundle : undefined;
  };
  return {
    async read(row) {
      if (row.batchTreeSize === null) throw new Error(`submission ${row.id} is in no published batch`);
      const log = await logCache.getLog(row.logId);
      const proof = await proofs.get(log, row.batchTreeSize);
      const cached = cache.get(row.id);
      if (cached !== undefined && isCurrent(cached, proof)) return cached.bundle;
      const isCached = cached !== undefined || readOnce.has(row.id);
      readOnce.set(row.id, true);
      const bytes = await render(row, proof);
      const bundle = serializedBundle(bytes, row.logIndex, isCached);
      if (isCached) {
        const size = bytes.length + OVERHEAD_BYTES;
        cache.set(row.id, { bundle, proof: validityOf(proof), projectId: row.projectId }, { size });
      }
      return bundle;
    },
    async findCached(id, { projectId, environment }) {
      const cached = cache.get(id);
      if (cached?.projectId !== projectId || cached.proof.log.environment !== environment) return undefined;
      return clock() < cached.proof.freshUntilMs ? cached.bundle : revalidate(cached);
    },
  };
}

/** Whether a cached bundle has the evidence of `proof`. If so, prolongs its validity to that of `proof`. */
function isCurrent(cached: CachedBundle, proof: BatchProof): boolean {
  if (cached.proof.evidence !== proof.evidence) return false;
  cached.proof = validityOf(proof);
  return true;
}

function serializedBundle(bytes: Buffer, logIndex: number, isCached: boolean): SerializedBundle {
  let json: ReturnType<SerializedBundle['json']> | undefined;
  return {
    bytes,
    json: () => {
      json ??= { bytes, etag: etagOf(bytes) };
      return json;
    },
    message: () => readBundle(JSON.parse(bytes.toString()) as JsonValue),
    logIndex,
    isCached,
  };
}

function validityOf({ log, treeSize, evidence, freshUntilMs }: BatchProof): CachedBundle['proof'] {
  return { log, treeSize, evidence, freshUntilMs };
}

/** Creates a function that renders the bundle of a submission as JSON. */
export function createBundleRenderer({ logCache, tiles }: { logCache: LogCache; tiles: ProofTiles }) {
  const write = createBundleWriter();
  return async (row: SubmissionRow, proof: BatchProof): Promise<Buffer> => {
    const { logIndex, signature, dsseKeyId, ownTiles } = row;
    const { log, sizes } = proof;
    const { spki } = await logCache.getDsseKey(dsseKeyId);
    return write(`${log.id} ${dsseKeyId}`, proof, {
      statement: statementOf(row, log.environment),
      signature,
      dsseKey: spki,
      logIndex,
      proofs: await tiles.prove(log.id, logIndex, sizes, ownTiles),
    });
  };
}

/** The statement that attests a submission. */
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
