/** What follows a submission of `attest submit`: the wait for witnesses, and the bundle. */
import { type Submission, SubmissionStatus } from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import type { Pushed } from '../oci/images.js';
import type { ImageReference } from '../oci/reference.js';
import type { BundleFolder } from './bundle-folder.js';
import { callUntil } from './grace.js';
import type { Input } from './inputs.js';
import { watchLanding } from './landing.js';
import { createLimit } from './limit.js';

/** A submission as it is printed, what went wrong after it was made, the file with its bundle, and what that is attached to. */
export type Finished = {
  readonly submission: Submission;
  readonly error?: unknown;
  readonly bundleFile?: string;
  readonly pushed?: Pushed;
};

type FinishOptions = {
  readonly client: Client;
  /** Whether to wait until it is witnessed, for at most `timeoutMs`. */
  readonly wait: boolean;
  readonly timeoutMs: number;
  /** Where the bundles go. */
  readonly folder: BundleFolder | undefined;
  /** Attaches the bundle of a submission to an image. */
  readonly push: ((image: ImageReference, id: string, signal: AbortSignal) => Promise<Pushed>) | undefined;
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
  const { client, stop: signal, onWitnessed, folder, isWhole, push } = options;
  const limit = createLimit(options.concurrency);
  const read = async ({ id }: Submission) =>
    await limit(() => callUntil(signal, (signal) => client.attestations.get(id, { signal })));
  const land = watchLanding(client, { ...options, signal });
  const wait = async (created: Submission): Promise<Submission> => {
    const landed = { ...(await land(created)), warnings: created.warnings };
    if (landed.status === SubmissionStatus.WITNESSED) onWitnessed();
    return landed;
  };
  const follow = async (input: Input, submission: Submission): Promise<Finished> => {
    if (folder !== undefined) {
      const isWritten = await limit(() => writeBundle(options, folder, { input, submission }));
      return isWritten ? { submission, bundleFile: folder.pathOf(input.name) } : { submission };
    }
    const whole = isWhole ? await read(submission) : undefined;
    return { submission: whole === undefined ? submission : { ...whole, warnings: submission.warnings } };
  };
  return async (input, created) => {
    let finished: Finished = { submission: created };
    try {
      if (!options.wait) return finished;
      finished = { submission: await wait(created) };
      if (signal.aborted) return finished;
      finished = await follow(input, finished.submission);
      const { image } = input;
      if (image === undefined || push === undefined || signal.aborted) return finished;
      return { ...finished, pushed: await limit(() => push(image, finished.submission.id, signal)) };
    } catch (error) {
      return { ...finished, error };
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
