/** `attest submit --public`: one submission of several files, each a subject of its public statement. */
import type { JsonObject } from '@bufbuild/protobuf';
import { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import { mapConcurrent } from '../../audit/source/map-concurrent.js';
import { type Cli, printError, UsageError } from '../../cli.js';
import { onInterruption } from '../../input/interruption.js';
import { type ImageFlags, imagesPusher } from '../../oci/submit-images.js';
import type { GitState } from '../../results/git/git-state.js';
import { withGit } from '../../results/git/with-git.js';
import { assertOutputs, type ResultFlags } from '../../results/submit-results.js';
import { type Build, continuation, submissionKey } from '../../submit/build.js';
import { hashInput } from '../../submit/hash-input.js';
import type { Input } from '../../submit/inputs.js';
import { openStages } from '../../submit/stages.js';
import { assertSubjects, type StatedFile, type StatementFlags } from '../../submit/statement.js';
import { submitOne } from '../../submit/submit-one.js';

type PublicSubmission = {
  readonly client: Client;
  readonly build: Build;
  readonly metadata: JsonObject | undefined;
  readonly git: GitState | undefined;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly flags: ResultFlags & StatementFlags & ImageFlags & { readonly lenient?: boolean };
};

/**
 * Hashes the inputs, and submits all in one call: the first is the artifact. Throws UsageError before anything is hashed if flags or
 * inputs do not fit a public statement, and what hashing and the call throw.
 */
export async function submitPublic(
  cli: Cli,
  inputs: readonly Input[],
  submission: PublicSubmission,
): Promise<void> {
  const { build, flags, metadata } = submission;
  if (metadata === undefined)
    throw new UsageError(
      '--public needs --metadata, whose schema has a predicate type, or --junit or --eval',
    );
  if (flags.lenient) throw new UsageError('--lenient does not go with --public: public metadata is valid');
  assertSubjects(inputs);
  assertOutputs(flags, undefined, build);
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal } = interruption;
  try {
    const files = await hashAll(cli, inputs, { ...submission, signal });
    const [first, ...others] = files;
    if (first === undefined || signal.aborted) {
      printError(cli, 'interrupted: nothing was submitted');
      return;
    }
    await submitOne(
      cli,
      {
        ...submission,
        label: labelOf(inputs),
        name: first.name,
        sha256: first.sha256,
        otherFiles: others,
        statement: flags,
        metadata: withGit(metadata, submission.git),
        validation: ValidationMode.STRICT,
        idempotencyKey: submissionKey(build, first),
        wait: flags.wait ?? false,
        bundle: flags.bundle,
        push: imagesPusher(cli, inputs, { ...submission, signal }),
        howToContinue: continuation(cli, build),
        isContinued: build.isGiven && !flags.force,
        signal,
      },
      flags,
    );
  } finally {
    interruption.end();
  }
}

/** No files if the signal aborts. Throws the first error of reading. */
async function hashAll(
  cli: Cli,
  inputs: readonly Input[],
  { concurrency, signal }: { concurrency: number; signal: AbortSignal },
): Promise<StatedFile[]> {
  const bytes = inputs.reduce((sum, input) => sum + input.bytes, 0);
  const stages = openStages(cli, { files: inputs.length, bytes, wait: false, bundles: false });
  const files: StatedFile[] = [];
  try {
    const hashing = { onBytes: stages.onBytes, signal };
    for await (const hashed of mapConcurrent(inputs, concurrency, (input) =>
      hashInput(cli, input, hashing),
    )) {
      if (signal.aborted) return [];
      if ('error' in hashed) throw hashed.error;
      files.push({ name: hashed.input.name, sha256: hashed.sha256 });
      stages.onHashed();
    }
    return files;
  } finally {
    stages.clear();
  }
}

function labelOf([first, ...others]: readonly Input[]): string {
  return others.length === 0 ? `${first?.label}` : `${first?.label} and ${others.length} more`;
}
