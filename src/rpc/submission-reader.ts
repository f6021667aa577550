import { create } from '@bufbuild/protobuf';
import { LRUCache } from 'lru-cache';
import {
  type Submission,
  SubmissionSchema,
  SubmissionStatus,
} from '../../gen/attestation/v1/attestations_pb.js';
import { ProofBundleSchema } from '../../gen/attestation/v1/bundle_pb.js';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../errors.js';
import { compileLazyMessage } from '../json/lazy-message.js';
import { compileWriter } from '../json/writer.js';
import { setWritten } from '../json/written.js';
import type { Principal } from '../principal.js';
import { andThen, type Soon } from '../soon.js';
import type { SubmissionRow } from '../store/submissions.js';
import type { BundleReader, WrittenBundle } from './bundles.js';
import { submissionNotFound } from './change-metadata.js';
import type { Directory } from './directory.js';
import { submissionMessage, submissionStatus } from './submission-message.js';

/** Reads single submissions for their owners. Another project's is not found, as one that never was. */
export type SubmissionReader = {
  /** The submission, with its bundle once that is ready. */
  read(id: string, caller: Principal): Promise<Submission>;
  /** Its bundle; throws `bundle.not_ready` before. */
  readBundle(id: string, caller: Principal): Soon<WrittenBundle>;
};

/** What it reads with. Both look-ups are of any project's. */
export type ReaderDeps = {
  findSubmission: (id: string) => Promise<SubmissionRow | undefined>;
  /** The {@link SubmissionRow.version} of a submission's row as it is now. */
  findVersion: (id: string) => Promise<string | undefined>;
  directory: Directory;
  bundles: BundleReader;
};

/** A witnessed submission as it was read: good for as long as its row and its bundle are the same. */
type Kept = { message: Submission; version: string; bundle: WrittenBundle };

/** As many as bundles are kept; the bundle itself is not kept twice. */
const SUBMISSIONS_KEPT = 2_200;
/** So long may metadata that another process has redacted stay in this one's memory; it is never shown. */
const KEPT_MS = 60_000;
/** How soon a bundle that is not ready is worth asking for again. */
const BUNDLE_RETRY_SECONDS = '1';
/** Stands for the bundle in a submission's text, where JSON holds no such character. */
const BUNDLE_MARK = '\0';

const write = compileWriter(SubmissionSchema);
const lazySubmission = compileLazyMessage(SubmissionSchema);

/**
 * A reader that keeps witnessed submissions as they were read last: what is left of reading one again is to ask
 * whether its row has changed, by correction or redaction, in any process.
 */
export function createSubmissionReader(deps: ReaderDeps): SubmissionReader {
  const { bundles } = deps;
  const keptSubmissions = new LRUCache<string, Kept>({
    max: SUBMISSIONS_KEPT,
    ttl: KEPT_MS,
    ttlAutopurge: true,
    ttlResolution: 1_000,
  });
  const findKept = async (id: string, caller: Principal): Promise<Submission | undefined> => {
    const kept = keptSubmissions.get(id);
    if (kept === undefined || (await bundles.findKept(id, caller)) !== kept.bundle) return undefined;
    if ((await deps.findVersion(id)) === kept.version) return kept.message;
    keptSubmissions.delete(id);
    return undefined;
  };
  return {
    async read(id, caller) {
      const kept = await findKept(id, caller);
      if (kept !== undefined) return kept;
      const row = await getOwnRow(deps, id, caller);
      const message = submissionMessage(row, caller.environment);
      if (!isBundleReady(row)) return message;
      const bundle = await bundles.read(row);
      message.bundle = bundle.message;
      if (message.status === SubmissionStatus.WITNESSED) {
        keptSubmissions.set(id, {
          message: writtenSubmission(message, bundle),
          version: row.version,
          bundle,
        });
      }
      return message;
    },
    readBundle(id, caller) {
      const make = async () => bundles.read(await getReadyRow(deps, id, caller));
      return andThen(bundles.findKept(id, caller), (kept) => kept ?? make());
    },
  };
}

/** The submission as bytes around those of its bundle. */
function writtenSubmission(message: Submission, { bytes }: WrittenBundle): Submission {
  const mark = setWritten(create(ProofBundleSchema), { bytes: Buffer.from(BUNDLE_MARK) });
  const [before = '', behind = ''] = write({ ...message, bundle: mark }).split(BUNDLE_MARK);
  const parts = [Buffer.from(before), bytes, Buffer.from(behind)];
  return lazySubmission({
    get bytes() {
      return Buffer.concat(parts);
    },
  });
}

async function getOwnRow(
  { findSubmission, directory }: ReaderDeps,
  id: string,
  { projectId, environment }: Principal,
): Promise<SubmissionRow> {
  const row = await findSubmission(id);
  const own = row?.projectId === projectId && (await directory.getLog(row.logId)).environment === environment;
  if (row === undefined || !own) throw submissionNotFound();
  return row;
}

function isBundleReady(row: SubmissionRow): boolean {
  const status = submissionStatus(row);
  return status === SubmissionStatus.WITNESSED || status === SubmissionStatus.PARTIAL;
}

async function getReadyRow(deps: ReaderDeps, id: string, caller: Principal): Promise<SubmissionRow> {
  const row = await getOwnRow(deps, id, caller);
  if (isBundleReady(row)) return row;
  const failed = submissionStatus(row) === SubmissionStatus.FAILED;
  throw new ApiError(
    ErrorCode.BUNDLE_NOT_READY,
    failed
      ? 'the batch failed: no required witness vouched for it'
      : 'the batch of this submission is not witnessed yet',
    {},
    failed ? {} : { 'retry-after': BUNDLE_RETRY_SECONDS },
  );
}
