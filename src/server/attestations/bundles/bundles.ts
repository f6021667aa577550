import type { JsonValue } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import { type ProofBundle, ProofBundleSchema } from '../../../../gen/attestation/v1/bundle_pb.js';
import type { LeafParts, SignatureStamps } from '../../../proof/bundle/bundle.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { type StatementFields, statementText } from '../../../proof/statement/statement.js';
import { environmentName } from '../../../protocol/environment.js';
import type { SerializedResponse } from '../../core/call.js';
import { etagOf } from '../../core/http/etag.js';
import type { Principal } from '../../core/principal.js';
import type { Pool } from '../../database/connect.js';
import { compileReader } from '../../json/codec.js';
import type { LogCache } from '../../log/log-cache.js';
import type { FoundStamps, SignatureStamper } from '../stamps/signature-stamper.js';
import { parseStamps } from '../stamps/stored-stamps.js';
import { createStatementReader, type ReadStatement } from '../statements/statement-store.js';
import { StatementVersion, signedOf } from '../statements/stored-statement.js';
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
  /** After how many seconds to ask again for a time stamp that is pending; undefined if none is. */
  readonly stampRetrySeconds: number | undefined;
};

/** Renders proof bundles and caches the JSON of those that are read again. */
export type BundleReader = {
  /**
   * Reads the bundle of a submission. Its batch must be published. Waits at most {@link STAMP_WAIT_MS} for the time stamps over
   * the signature that are not stored, or as long as the caller says.
   */
  read(row: SubmissionRow, stampWaitMs?: number): Promise<SerializedBundle>;
  /** Looks up a cached bundle. Returns undefined if it is not cached, not current, or not the caller's. */
  findCached(id: string, caller: Principal): Promise<SerializedBundle | undefined>;
};

/** A cached bundle. Current while its batch has the same evidence. */
type CachedBundle = {
  bundle: SerializedBundle;
  proof: Pick<BatchProof, 'log' | 'treeSize' | 'evidence' | 'freshUntilMs'>;
  projectId: string;
};

/** Stamps delay a bundle by less than a second in all. */
const STAMP_WAIT_MS = 800;

const CACHE_BYTES = 16 * 1024 * 1024;
/**
 * Bundles are cached when they are read again: most are read once, and one that is cached until it is evicted lives long
 * enough for the old generation of the heap; it takes the process 100 µs, not 75.
 */
const READ_ONCE = 4_096;
/** Memory that a cached bundle takes beside its JSON. */
const OVERHEAD_BYTES = 1_500;

const readBundle = compileReader(ProofBundleSchema);

type BundleReaderDeps = {
  pool: Pool;
  logCache: LogCache;
  /** Without one, bundles have the stamps that are stored. */
  stamper?: SignatureStamper;
  /** Monotonic milliseconds. */
  clock?: () => number;
};

/**
 * A reader whose caches are correct with any number of processes: tiles, which only grow; what the bundles of a batch
 * share, revalidated after seconds; and bundles, current while that is unchanged. Redaction and correction do not change
 * bundles; erasing a stored statement does, so bundles with one are not cached. Neither is a bundle that lacks a time stamp;
 * one that has all does not change.
 */
export function createBundleReader({
  pool,
  logCache,
  stamper,
  clock = () => performance.now(),
}: BundleReaderDeps): BundleReader {
  const tiles = createProofTiles(pool);
  const render = createBundleRenderer({ logCache, tiles, readStatement: createStatementReader(pool) });
  const proofs = createBatchProofs(pool, clock);
  const cache = new LRUCache<string, CachedBundle>({ maxSize: CACHE_BYTES });
  const readOnce = new LRUCache<string, true>({ max: READ_ONCE });
  const revalidate = async (cached: CachedBundle): Promise<SerializedBundle | undefined> => {
    const { log, treeSize } = cached.proof;
    return isCurrent(cached, await proofs.get(log, treeSize)) ? cached.bundle : undefined;
  };
  return {
    async read(row, stampWaitMs = STAMP_WAIT_MS) {
      if (row.batchTreeSize === null) throw new Error(`submission ${row.id} is in no published batch`);
      const log = await logCache.getLog(row.logId);
      const proof = await proofs.get(log, row.batchTreeSize);
      const cached = cache.get(row.id);
      if (cached !== undefined && isCurrent(cached, proof)) return cached.bundle;
      const stamps = await (stamper?.complete(row, log.environment, stampWaitMs) ?? storedStamps(row));
      const mayCache = row.statementVersion === StatementVersion.OF_ROW && !stamps.isStampPending;
      const isCached = mayCache && (cached !== undefined || readOnce.has(row.id));
      readOnce.set(row.id, true);
      const bytes = await render(row, proof, stamps);
      const bundle = serializedBundle(bytes, row.logIndex, {
        isCached,
        stampRetrySeconds: retrySeconds(stamps),
      });
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

function storedStamps({ stamps }: Pick<SubmissionRow, 'stamps'>): FoundStamps {
  const stored = parseStamps(stamps).map(({ response }) => response);
  return { stamps: stored, isStampPending: false, retryAfterMs: 0 };
}

function retrySeconds({ isStampPending, retryAfterMs }: FoundStamps): number | undefined {
  return isStampPending ? Math.max(1, Math.ceil(retryAfterMs / 1_000)) : undefined;
}

function serializedBundle(
  bytes: Buffer,
  logIndex: number,
  state: Pick<SerializedBundle, 'isCached' | 'stampRetrySeconds'>,
): SerializedBundle {
  let json: ReturnType<SerializedBundle['json']> | undefined;
  return {
    bytes,
    json: () => {
      json ??= { bytes, etag: etagOf(bytes) };
      return json;
    },
    message: () => readBundle(JSON.parse(bytes.toString()) as JsonValue),
    logIndex,
    ...state,
  };
}

function validityOf({ log, treeSize, evidence, freshUntilMs }: BatchProof): CachedBundle['proof'] {
  return { log, treeSize, evidence, freshUntilMs };
}

type RenderDeps = { logCache: LogCache; tiles: ProofTiles; readStatement: ReadStatement };

/** Creates a function that renders the bundle of a submission as JSON. */
export function createBundleRenderer({ logCache, tiles, readStatement }: RenderDeps) {
  const write = createBundleWriter();
  return async (row: SubmissionRow, proof: BatchProof, stamps: SignatureStamps): Promise<Buffer> => {
    const { logIndex, signature, dsseKeyId, ownTiles } = row;
    const { log, sizes } = proof;
    const { spki } = await logCache.getDsseKey(dsseKeyId);
    return write(`${log.id} ${dsseKeyId}`, proof, {
      submission: bundledOf(row, log.environment),
      statement: await readSigned(readStatement, row, log.environment),
      signature,
      dsseKey: spki,
      logIndex,
      proofs: await tiles.prove(log.id, logIndex, sizes, ownTiles),
      ...stamps,
    });
  };
}

/** The signed statement of a submission, or what is left of an erased one. */
export async function readSigned(
  readStatement: ReadStatement,
  row: SubmissionRow,
  environment: number,
): Promise<LeafParts['statement']> {
  if (row.statementVersion === StatementVersion.OF_ROW) return statementText(statementOf(row, environment));
  return signedOf(await readStatement(row));
}

/** The statement of a submission that is made of its row. */
export function statementOf(row: SubmissionRow, environment: number): StatementFields {
  return {
    ...bundledOf(row, environment),
    project: row.projectId,
    schema: row.attestedSchema ?? row.schema,
    commitment: toHex(row.commitment),
  };
}

function bundledOf(row: SubmissionRow, environment: number): LeafParts['submission'] {
  return {
    artifactSha256: toHex(row.artifactSha256),
    submissionId: row.id,
    submittedAt: row.submittedAt.toISOString(),
    environment: environmentName(environment),
  };
}
