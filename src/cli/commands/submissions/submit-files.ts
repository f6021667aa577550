/** Hashes files and submits them, many in a call; waits for them and writes their bundles. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Submission, ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client, SubmitManyItem } from '../../../client/client.js';
import { MAX_BATCH_ITEMS } from '../../../client/gather-items.js';
import { mapConcurrent } from '../../audit/source/map-concurrent.js';
import { type Cli, printError } from '../../cli.js';
import { onInterruption } from '../../input/interruption.js';
import { type ImageFlags, imagePusher } from '../../oci/submit-images.js';
import type { GitState } from '../../results/git/git-state.js';
import { withGit } from '../../results/git/with-git.js';
import { type Build, continuation, submissionKey } from '../../submit/build.js';
import { openBundleFolder } from '../../submit/bundle-folder.js';
import { type Earlier, findEarlier } from '../../submit/earlier.js';
import { finishSubmissions } from '../../submit/finish.js';
import { callUntil, startGrace } from '../../submit/grace.js';
import { type HashedInput, hashInput } from '../../submit/hash-input.js';
import type { Input } from '../../submit/inputs.js';
import { readAhead } from '../../submit/read-ahead.js';
import { defaultMetadata } from '../../submit/recorded-name.js';
import { openStages } from '../../submit/stages.js';
import { type StatementFlags, statedRequest } from '../../submit/statement.js';
import { affectsOneFile, openReport } from './submit-report.js';

/** Flags of what is done with many files. */
export type FilesFlags = StatementFlags &
  ImageFlags & {
    readonly bundles?: string;
    readonly force?: boolean;
    readonly wait?: boolean;
    readonly quiet?: boolean;
    readonly json?: boolean;
  };

type Submitting = {
  readonly client: Client;
  readonly build: Build;
  /** Of every file; its package URL by default. */
  readonly metadata: JsonObject | undefined;
  /** Added to the metadata. */
  readonly git?: GitState | undefined;
  readonly validation: ValidationMode;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly flags: FilesFlags;
};

/** So many files are hashed before they can be submitted, within a rate limit for one. */
const MAX_AHEAD = 10_000;

/** An input's submission, or why there is none. */
type Submitted = { readonly input: Input } & ({ submission: Submission } | { error: unknown });

/**
 * Submits the inputs and prints a result of each, in their order. Ends within a second of SIGINT or SIGTERM, with what is
 * recorded printed. Throws UsageError before anything is submitted if a bundle is in the way.
 */
export async function submitFiles(cli: Cli, inputs: readonly Input[], options: Submitting): Promise<void> {
  const { flags, concurrency, build } = options;
  const names = inputs.map(({ name }) => name);
  const kinds = { force: flags.force ?? false, isContinued: build.isGiven };
  const folder = flags.bundles === undefined ? undefined : openBundleFolder(flags.bundles, names, kinds);
  const bytes = inputs.reduce((sum, input) => sum + input.bytes, 0);
  const wait = flags.wait ?? false;
  const stages = openStages(cli, { files: inputs.length, bytes, wait, bundles: folder !== undefined });
  const report = openReport(cli, flags);
  announceBuild(cli, inputs, build);
  const failed = new AbortController();
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal: stop } = interruption;
  const grace = startGrace(stop);
  let kept = 0;
  const finish = finishSubmissions({
    ...options,
    wait,
    folder,
    push: imagePusher(cli, options.client, flags),
    isWhole: flags.json ?? false,
    stop,
    now: () => cli.now().getTime(),
    onPoll: stages.tick,
    onWitnessed: stages.onWitnessed,
    onWritten: (isKept) => {
      if (isKept) kept++;
      stages.onWritten();
    },
  });
  const hashing = { onBytes: stages.onBytes, signal: AbortSignal.any([failed.signal, stop]) };
  const hashed = mapConcurrent(inputs, concurrency, async (input) => {
    const result = await hashInput(cli, input, hashing);
    stages.onHashed();
    return result;
  });
  // Results are printed in the order of the inputs, while others are submitted and waited for.
  let printed = Promise.resolve();
  try {
    const earlier = await callUntil(stop, (signal) => findEarlier(options.client, build, { signal }));
    const signals = { failed: failed.signal, stop, signal: grace.signal };
    const ahead = readAhead(hashed, MAX_AHEAD);
    for await (const one of submitHashed(ahead, { ...options, ...signals, earlier })) {
      stages.onResult('submission' in one);
      if ('error' in one && !affectsOneFile(one.error)) failed.abort();
      const { input } = one;
      const finished = 'error' in one ? one : finish(input, one.submission);
      printed = printed.then(async () => {
        const result = await finished;
        stages.clear();
        if (!report.add({ ...result, file: input.label })) failed.abort();
      });
    }
    await printed;
  } finally {
    stages.clear();
    grace.end();
    interruption.end();
  }
  report.end({
    files: inputs.length,
    isInterrupted: stop.aborted,
    build,
    kept,
    bundles: flags.bundles,
  });
}

/** Names the build before more than one call is made: a part may be recorded when the process is killed. */
function announceBuild(cli: Cli, { length }: readonly Input[], build: Build): void {
  if (length > MAX_BATCH_ITEMS && !build.isGiven)
    printError(cli, `if this run is killed, ${continuation(cli, build)}`);
}

/** A file that waits for its result; `item` is its place among those that are submitted. */
type Waiting = { readonly item: number; readonly input: Input; readonly result?: Submitted };

/** `failed` ends the hashing of further files; `stop` also makes no further call, and leaves out what has no result. */
type SubmitHashedOptions = Submitting & {
  readonly earlier: Earlier | undefined;
  readonly failed: AbortSignal;
  readonly stop: AbortSignal;
  /** After a stop, breaks off the call under way. */
  readonly signal: AbortSignal;
};

/** Submits files that the build does not have, and yields the results of all in their order. */
async function* submitHashed(
  hashed: AsyncIterable<HashedInput>,
  options: SubmitHashedOptions,
): AsyncGenerator<Submitted> {
  const { client, earlier, failed, stop, signal } = options;
  const waiting: Waiting[] = [];
  let count = 0;
  const items = async function* (): AsyncGenerator<SubmitManyItem> {
    for await (const one of hashed) {
      if (failed.aborted || stop.aborted) return;
      const { input } = one;
      const item = 'sha256' in one ? makeItem(input, one.sha256, options) : undefined;
      const submission = item && earlier?.(item.artifact.sha256, item.metadata);
      if (item !== undefined && submission === undefined) {
        waiting.push({ input, item: count++ });
        yield item;
        continue;
      }
      const result = 'error' in one ? one : { input, submission: submission as Submission };
      waiting.push({ input, item: Number.NEGATIVE_INFINITY, result });
    }
  };
  for await (const { index, submission, error } of client.attestations.submitMany(items(), {
    stop,
    signal,
  })) {
    yield* takeUntil(waiting, index);
    const { input } = waiting.shift() as Waiting;
    yield submission === undefined ? { input, error } : { input, submission };
  }
  yield* takeUntil(waiting, count);
}

function makeItem(input: Input, sha256: string, { build, metadata, git, validation, flags }: Submitting) {
  const { name, describe } = input;
  return {
    ...statedRequest(flags, { name, sha256 }),
    metadata: withGit(describe?.(sha256, metadata) ?? metadata ?? defaultMetadata(name, sha256), git),
    validation,
    build: build.id,
    idempotencyKey: submissionKey(build, { name, sha256 }),
  };
}

/** Takes the files before an item; those that were not submitted now have their result. */
function* takeUntil(waiting: Waiting[], index: number): Generator<Submitted> {
  for (let [first] = waiting; first !== undefined && first.item < index; [first] = waiting) {
    waiting.shift();
    if (first.result !== undefined) yield first.result;
  }
}
