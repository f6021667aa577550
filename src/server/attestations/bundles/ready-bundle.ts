import { isBundleReady } from '../submissions/submission-reader.js';
import type { SubmissionRow } from '../submissions/submissions.js';
import type { BundleReader, SerializedBundle } from './bundles.js';

/** The JSON of a bundle; `stampRetrySeconds` is as of a {@link SerializedBundle}. */
export type BundleBytes = Pick<SerializedBundle, 'bytes' | 'stampRetrySeconds'>;

/** The bundle of a submission of any project; `read` renders it, and waits for time stamps as {@link BundleReader} does. */
export type ReadyBundle = { projectId: string; read: (stampWaitMs?: number) => Promise<BundleBytes> };

/** Look-ups of submissions and bundles of any project. */
export type SubmissionReaders = {
  findSubmission: (id: string) => Promise<SubmissionRow | undefined>;
  bundles: BundleReader;
};

/** Finds the bundle of a submission. Returns undefined if there is none, or it is neither witnessed nor partial. */
export async function findReadyBundle(
  { findSubmission, bundles }: SubmissionReaders,
  id: string,
): Promise<ReadyBundle | undefined> {
  const row = await findSubmission(id);
  if (row === undefined || !isBundleReady(row)) return undefined;
  return { projectId: row.projectId, read: (stampWaitMs) => bundles.read(row, stampWaitMs) };
}
