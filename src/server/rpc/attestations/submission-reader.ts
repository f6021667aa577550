import { LRUCache } from 'lru-cache';
import { type Submission, SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { SerializedResponse } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Principal } from '../../core/principal.js';
import type { LogCache } from '../../logs/log-cache.js';
import type { SubmissionRow } from '../../store/submissions/submissions.js';
import type { BundleReader, SerializedBundle } from './bundles.js';
import { submissionNotFound } from './change-metadata.js';
import { submissionView, submissionResponse, submissionStatus } from './submission-message.js';

/** Reads single submissions for their owners. Another project's is not found, as one that never was. */
export type SubmissionReader = {
  /** The submission, with its bundle once that is ready. */
  read(id: string, caller: Principal): Promise<SerializedResponse<Submission>>;
  /** Its bundle; throws `bundle.not_ready` before. */
  readBundle(id: string, caller: Principal): Promise<SerializedBundle>;
};

/** What it reads with. Both look-ups are of any project's. */
export type ReaderDeps = {
  findSubmission: (id: string) => Promise<SubmissionRow | undefined>;
  /** The {@link SubmissionRow.projectChanges} of a project as they are now; undefined is none. */
  countChanges: (projectId: string) => Promise<number | undefined>;
  logCache: LogCache;
  bundles: BundleReader;
};

/**
 * A witnessed submission as it was read: good for as long as its row and its bundle are the same, and its row is for as
 * long as no submission of its project has changed.
 */
type CachedSubmission = {
  response: SerializedResponse<Submission>;
  version: string;
  projectChanges: number;
  bundle: SerializedBundle;
};

/** As many as bundles are kept; the bundle itself is not kept twice. */
const SUBMISSIONS_CACHED = 2_200;
/** So long may metadata that another process has redacted stay in this one's memory; it is never shown. */
const TTL_MS = 60_000;
/** How soon a bundle that is not ready is worth asking for again. */
const BUNDLE_RETRY_SECONDS = '1';

/**
 * A reader that keeps witnessed submissions as they were read last: what is left of reading one again is to ask
 * whether any of its project has changed, by correction or redaction, in any process.
 */
export function createSubmissionReader(deps: ReaderDeps): SubmissionReader {
  const { bundles } = deps;
  const cache = new LRUCache<string, CachedSubmission>({
    max: SUBMISSIONS_CACHED,
    ttl: TTL_MS,
    ttlAutopurge: true,
    ttlResolution: 1_000,
  });
  const readRow = async (id: string, caller: Principal, kept: CachedSubmission | undefined) => {
    const row = await getCallersRow(deps, id, caller);
    const { environment } = caller;
    if (!isBundleReady(row)) return submissionResponse(submissionView(row), environment);
    const bundle = await bundles.read(row);
    const { version, projectChanges } = row;
    if (kept?.version === version && kept.bundle === bundle) {
      kept.projectChanges = projectChanges;
      return kept.response;
    }
    const response = submissionResponse(submissionView(row), environment, { bundle });
    if (submissionStatus(row) === SubmissionStatus.WITNESSED) {
      cache.set(id, { response, version, projectChanges, bundle });
    }
    return response;
  };
  return {
    async read(id, caller) {
      const kept = cache.get(id);
      if (kept === undefined) return readRow(id, caller, undefined);
      const bundle = await bundles.findCached(id, caller);
      if (bundle !== kept.bundle) return readRow(id, caller, undefined);
      const changes = (await deps.countChanges(caller.projectId)) ?? 0;
      return changes === kept.projectChanges ? kept.response : readRow(id, caller, kept);
    },
    async readBundle(id, caller) {
      const kept = await bundles.findCached(id, caller);
      return kept ?? bundles.read(await getReadyRow(deps, id, caller));
    },
  };
}

async function getCallersRow(
  { findSubmission, logCache }: ReaderDeps,
  id: string,
  { projectId, environment }: Principal,
): Promise<SubmissionRow> {
  const row = await findSubmission(id);
  const own = row?.projectId === projectId && (await logCache.getLog(row.logId)).environment === environment;
  if (row === undefined || !own) throw submissionNotFound();
  return row;
}

function isBundleReady(row: SubmissionRow): boolean {
  const status = submissionStatus(row);
  return status === SubmissionStatus.WITNESSED || status === SubmissionStatus.PARTIAL;
}

async function getReadyRow(deps: ReaderDeps, id: string, caller: Principal): Promise<SubmissionRow> {
  const row = await getCallersRow(deps, id, caller);
  if (isBundleReady(row)) return row;
  const failed = submissionStatus(row) === SubmissionStatus.FAILED;
  throw new ApiError(
    ErrorCode.BUNDLE_NOT_READY,
    failed
      ? 'the batch failed: no required witness vouched for it'
      : 'the batch of this submission is not witnessed yet; ask again after Retry-After',
    {},
    failed ? {} : { 'retry-after': BUNDLE_RETRY_SECONDS },
  );
}
