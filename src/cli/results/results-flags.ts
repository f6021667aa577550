/** Flags of `attest submit` for what tools leave behind. */
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../cli.js';

/** Flags that say what is submitted instead of files. */
export type ResultsFlags = {
  readonly eval?: string;
  readonly dataset?: string;
  readonly snapshots?: string;
  readonly report?: string;
};

/** Help text about them. */
export const RESULTS_HELP = `
--eval takes a log of inspect_ai (.eval or .json), results of lm-evaluation-harness, or output of promptfoo, and makes a set of
its samples and the log itself; \`attest eval\` shows them. --snapshots takes a folder with snapshots of Playwright, Vitest or
Jest, and submits each. Both make the metadata (schemas evaluation.v1, ui_snapshot.v1), to which --metadata adds members.`;

/** What else says what is submitted, or how, by the name of its flag. */
const OTHERS = ['each', 'filesFrom', 'checksums', 'include', 'exclude', 'followSymlinks', 'oci'] as const;
const OF_SET = ['set', 'bundle', 'notBefore'] as const;

type Flags = ResultsFlags & {
  readonly [name in (typeof OTHERS | typeof OF_SET)[number] | 'bundles']?: unknown;
};

/** Throws UsageError unless what these flags take is submitted alone, with flags that go with it. */
export function assertAlone(given: readonly string[], flags: Flags): void {
  const { eval: log, snapshots, dataset, report } = flags;
  if (dataset !== undefined && log === undefined) throw new UsageError('--dataset needs --eval');
  if (report !== undefined && snapshots === undefined) throw new UsageError('--report needs --snapshots');
  if (log === undefined && snapshots === undefined) return;
  const flag = log === undefined ? '--snapshots' : '--eval';
  const unfit = [...OTHERS, ...(log === undefined ? OF_SET : (['bundles'] as const))];
  const wrong = unfit.find((name) => flags[name] !== undefined);
  if (given.length > 0 || (log !== undefined && snapshots !== undefined))
    throw new UsageError(`${flag} is submitted alone, without other files`);
  if (wrong !== undefined) throw new UsageError(`${flag} does not go with --${kebab(wrong)}`);
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Metadata that was made of results with the members that --metadata gives. Throws UsageError if those are of another schema. */
export function withGiven(made: JsonObject, given: JsonObject | undefined): JsonObject {
  if (given !== undefined && given.schema !== made.schema)
    throw new UsageError(`--metadata adds to metadata of the schema ${made.schema}: it has another schema`);
  return { ...made, ...given };
}
