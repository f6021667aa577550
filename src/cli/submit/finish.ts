/** What follows a submission of `attest submit`: the wait for witnesses, and the bundle. */
import { type Submission, SubmissionStatus } from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import type { BundleFolder } from './bundle-folder.js';
import { callUntil } from './grace.js';
import type { Input } from './inputs.js';
import { watchLanding } from './landing.js';
import { createLimit } from './limit.js';

/** A submission as it is printed, what went wrong after it was made, and the file with its bundle. */
export type Finished = {
  readonly submission: Submission;
  readonly error?: unknown;
  readonly bundleFile?: string;
};

type FinishOptions = {
  readonly client: Client;
  /** Whether to wait until it is witnessed, for at most `timeoutMs`. */
  readonly wait: boolean;
  readonly timeoutMs: number;
  /** Where the bundles go. */
  readonly folder: BundleFolder | undefined;
  /** Whether the submission is printed with its bundle. */
  readonly isWhole: boolean;
  /** Calls at a time. */
  readonly concurrency: number;
  readonly stop: AbortSignal;
  readonly now: () => number;
  readonly onPoll: () => void;
  readonly onWitnessed: () => void;
  readonly onWritten: (isKept: boolean) => void;
};

/** Returns a function that finishes a submission. After a stop it returns what it has. */
export function finishSubmissions(
  options: FinishOptions,
): (input: Input, submission: Submission) => Promise<Finished> {
  const { client, wait, stop: signal, onWitnessed, folder, isWhole } = options;
  const limit = createLimit(options.concurrency);
  const land = watchLanding(client, { ...options, signal });
  const read = async ({ id }: Submission) =>
    await limit(() => callUntil(signal, (signal) => client.attestations.get(id, { signal })));
  return async (input, created) => {
    let submission = created;
    try {
      if (wait) {
        submission = { ...(await land(created)), warnings: created.warnings };
        if (submission.status === SubmissionStatus.WITNESSED) onWitnessed();
      }
      if (signal.aborted || !wait) return { submission };
      if (folder === undefined) {
        const whole = isWhole ? await read(submission) : undefined;
        return { submission: whole === undefined ? submission : { ...whole, warnings: created.warnings } };
      }
      const isWritten = await limit(() => writeBundle(options, folder, { input, submission }));
      return isWritten ? { submission, bundleFile: folder.pathOf(input.name) } : { submission };
    } catch (error) {
      return { submission, error };
    }
  };
}

/** Whether the bundle is there now: not if a stop came before. */
async function writeBundle(
  { client, stop, onWritten }: FinishOptions,
  folder: BundleFolder,
  { input: { name }, submission: { id } }: { input: Input; submission: Submission },
): Promise<boolean> {
  if (stop.aborted) return false;
  const isKept = await folder.has(name, id);
  if (!isKept) {
    const format = 'bundle.json';
    const found = await callUntil(stop, (signal) =>
      client.attestations.downloadBundle({ id, format }, { signal }),
    );
    if (found === undefined) return false;
    await folder.write(name, found.data);
  }
  onWritten(isKept);
  return true;
}
