import { LRUCache } from 'lru-cache';
import type { Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { BatchStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import type { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Subject } from '../../../proof/statement/public-statement.js';
import type { SerializedResponse } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { etagOf } from '../../core/http/etag.js';
import type { Principal } from '../../core/principal.js';
import type { LogCache } from '../../log/log-cache.js';
import type { AssertNotArchived } from '../archived/find-archived.js';
import type { BundleReader, SerializedBundle } from '../bundles/bundles.js';
import type { ReadStatement } from '../statements/statement-store.js';
import { otherSubjects, StatementVersion } from '../statements/stored-statement.js';
import { submissionNotFound } from './change-metadata.js';
import {
  type SubmissionView,
  submissionJson,
  submissionMessage,
  submissionResponse,
  submissionView,
} from './submission-message.js';
import type { SubmissionRow } from './submissions.js';

/** Reads submissions of the caller. Throws `submission.not_found` if one is unknown or another project's, `submission.archived` if it was removed. */
export type SubmissionReader = {
  /** Reads a submission, with its bundle if it is ready. */
  read(id: string, caller: Principal): Promise<ReadSubmission>;
  /**
   * Reads the bundle of a submission. Throws `bundle.not_ready`. `stampWaitMs`: how long it waits for time stamps over the
   * signature, see {@link BundleReader}.
   */
  readBundle(id: string, caller: Principal, stampWaitMs?: number): Promise<SerializedBundle>;
};

/** A submission; `stampRetrySeconds` is that of its bundle. */
type ReadSubmission = SerializedResponse<Submission> & Partial<Pick<SerializedBundle, 'stampRetrySeconds'>>;

/** Both look-ups are for submissions of any project. */
type ReaderDeps = {
  findSubmission: (id: string) => Promise<SubmissionRow | undefined>;
  /** Reads a project's current {@link SubmissionRow.projectChanges}. Returns undefined if it has none. */
  countChanges: (projectId: string) => Promise<number | undefined>;
  logCache: LogCache;
  bundles: BundleReader;
  readStatement: ReadStatement;
  assertNotArchived: AssertNotArchived;
};

/**
 * A cached response. Valid while the bundle is unchanged and the project's metadata-change counter still equals
 * `projectChanges`.
 */
type CachedSubmission = {
  response: ReadSubmission;
  version: string;
  projectChanges: number;
  bundle: SerializedBundle;
};

/** About as many as bundles are cached. Both caches share the bundles. */
const SUBMISSIONS_CACHED = 2_200;
/** How long metadata that another process has redacted may stay in memory. It is not returned any more. */
const TTL_MS = 60_000;
/** `Retry-After` if a bundle is not ready. */
const BUNDLE_RETRY_SECONDS = '1';

/**
 * A reader that caches the responses of witnessed submissions whose bundles are cached. A cache hit costs one batched query: whether any process
 * has corrected or redacted a submission of the project.
 */
export function createSubmissionReader(deps: ReaderDeps): SubmissionReader {
  const { bundles } = deps;
  const cache = new LRUCache<string, CachedSubmission>({
    max: SUBMISSIONS_CACHED,
    ttl: TTL_MS,
    ttlAutopurge: true,
    ttlResolution: 1_000,
  });
  const readRow = async (id: string, caller: Principal, cached: CachedSubmission | undefined) => {
    const row = await getCallersRow(deps, id, caller);
    const { environment } = caller;
    const subjects = await readSubjects(deps, row);
    if (!isBundleReady(row)) return submissionResponse(submissionView(row), environment, { subjects });
    const bundle = await bundles.read(row);
    const { version, projectChanges } = row;
    if (cached?.version === version && cached.bundle === bundle) {
      cached.projectChanges = projectChanges;
      return cached.response;
    }
    const response = bundledResponse(submissionView(row), environment, bundle, subjects);
    if (bundle.isCached && row.batchStatus === BatchStatus.WITNESSED) {
      cache.set(id, { response, version, projectChanges, bundle });
    }
    return response;
  };
  return {
    async read(id, caller) {
      const cached = cache.get(id);
      if (cached === undefined) return readRow(id, caller, undefined);
      const bundle = await bundles.findCached(id, caller);
      if (bundle !== cached.bundle) return readRow(id, caller, undefined);
      const changes = (await deps.countChanges(caller.projectId)) ?? 0;
      return changes === cached.projectChanges ? cached.response : readRow(id, caller, cached);
    },
    async readBundle(id, caller, stampWaitMs) {
      const cached = await bundles.findCached(id, caller);
      return cached ?? bundles.read(await getReadyRow(deps, id, caller), stampWaitMs);
    },
  };
}

/** JSON texts do not contain it. */
const HOLE = { json: () => ({ bytes: Buffer.from('\0') }) };

/** A submission with its bundle. What is around the bundle is rendered once, so that the response holds no copy of it. */
function bundledResponse(
  shown: SubmissionView,
  environment: Environment,
  bundle: SerializedBundle,
  subjects: readonly Subject[] | undefined,
): ReadSubmission {
  let around: Buffer[] | undefined;
  let etag: string | undefined;
  return {
    json: () => {
      around ??= submissionJson(shown, environment, { bundle: HOLE, subjects })
        .split('\0')
        .map((text) => Buffer.from(text));
      const [before, after] = around as [Buffer, Buffer];
      const bytes = Buffer.concat([before, bundle.bytes, after]);
      etag ??= etagOf(bytes);
      return { bytes, etag };
    },
    message: () => submissionMessage(shown, environment, { bundle, subjects }),
    stampRetrySeconds: bundle.stampRetrySeconds,
  };
}

/** The subjects of a public statement beside the artifact, unless it is redacted. */
async function readSubjects(
  { readStatement }: ReaderDeps,
  row: SubmissionRow,
): Promise<readonly Subject[] | undefined> {
  if (row.statementVersion !== StatementVersion.PUBLIC || row.statementShown === null) return undefined;
  const { text } = await readStatement(row);
  return text === null ? undefined : otherSubjects(text);
}

async function getCallersRow(
  { findSubmission, logCache, assertNotArchived }: ReaderDeps,
  id: string,
  caller: Principal,
): Promise<SubmissionRow> {
  const { projectId, environment } = caller;
  const row = await findSubmission(id);
  if (row === undefined) await assertNotArchived(id, caller);
  const own = row?.projectId === projectId && (await logCache.getLog(row.logId)).environment === environment;
  if (row === undefined || !own) throw submissionNotFound();
  return row;
}

/** Whether enough witnesses vouch for a submission that it has a bundle. */
export function isBundleReady({ batchStatus }: SubmissionRow): boolean {
  return batchStatus === BatchStatus.WITNESSED || batchStatus === BatchStatus.PARTIAL;
}

async function getReadyRow(deps: ReaderDeps, id: string, caller: Principal): Promise<SubmissionRow> {
  const row = await getCallersRow(deps, id, caller);
  if (isBundleReady(row)) return row;
  const failed = row.batchStatus === BatchStatus.FAILED;
  throw new ApiError(
    ErrorCode.BUNDLE_NOT_READY,
    failed
      ? 'the batch failed: no required witness vouched for it'
      : 'the batch of this submission is not witnessed yet; ask again after Retry-After',
    {},
    failed ? {} : { 'retry-after': BUNDLE_RETRY_SECONDS },
  );
}
