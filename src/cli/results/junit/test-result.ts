/** The predicate of in-toto's test result, made of a tally. */
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import type { Outcome } from './outcome.js';
import type { Names, Tally } from './tally.js';

const SCHEMA = 'intoto.test_result.v0.1';

/** The service takes 64 KiB; the rest is for counts of what is left out. */
const MAX_BYTES = 64 * 1024 - 512;

/** The lists of names, those first that matter most. */
const LISTS = [
  ['failed', 'failedTests'],
  ['warned', 'warnedTests'],
  ['passed', 'passedTests'],
] as const;

export type RunDetails = {
  /** What configured the run: resource descriptors of in-toto. */
  readonly configuration: readonly JsonObject[];
  readonly url?: string | undefined;
  /** The command that ran the tests, with its exit code. */
  readonly command?: { readonly exitCode: number } & JsonObject;
};

/**
 * Makes the metadata of tests, or of a command alone. FAILED if a test failed, a suite counts failures, or the command failed;
 * WARNED if a test passed at another attempt only, or none passed. Lists as many names as the service takes: failed before
 * warned before passed. Throws UsageError if the details alone are too long.
 */
export function makeTestResult(tally: Tally | undefined, details: RunDetails): JsonObject {
  const { configuration, url, command } = details;
  const metadata: JsonObject = {
    schema: SCHEMA,
    result: resultOf(tally, command?.exitCode),
    configuration: [...configuration],
    ...(url !== undefined && { url }),
    ...(command !== undefined && { attest_command: command }),
    ...(tally !== undefined && { attest_counts: countsOf(tally) }),
  };
  let room = MAX_BYTES - sizeOf(metadata);
  if (room < 0)
    throw new UsageError(
      'the metadata would be longer than 64 KiB: name fewer files, or attest their folder as a set',
    );
  if (tally === undefined) return metadata;
  const omitted: JsonObject = {};
  for (const [outcome, member] of LISTS) {
    const { listed, size } = takeNames(tally.names(outcome), room - member.length);
    metadata[member] = listed;
    room -= size + member.length;
    const left = tally.names(outcome).count - listed.length;
    if (left > 0) omitted[member] = left;
  }
  return Object.keys(omitted).length === 0 ? metadata : { ...metadata, attest_omitted: omitted };
}

function resultOf(tally: Tally | undefined, exitCode = 0): 'PASSED' | 'WARNED' | 'FAILED' {
  if (exitCode !== 0) return 'FAILED';
  if (tally === undefined) return 'PASSED';
  if (tally.cases('failed') > 0) return 'FAILED';
  if (tally.hasDeclaredFailure()) return 'FAILED';
  return tally.cases('warned') > 0 || tally.cases('passed') === 0 ? 'WARNED' : 'PASSED';
}

/** Of test cases, as the tool counts them. */
function countsOf(tally: Tally): JsonObject {
  const of = (outcome: Outcome) => tally.cases(outcome);
  const [passed, warned, failed, skipped] = [of('passed'), of('warned'), of('failed'), of('skipped')];
  return { tests: passed + warned + failed + skipped, passed, warned, failed, skipped };
}

function takeNames({ names }: Names, room: number): { listed: string[]; size: number } {
  const listed: string[] = [];
  let size = 0;
  for (const name of names) {
    const more = sizeOf(name) + 1;
    if (size + more > room) break;
    listed.push(name);
    size += more;
  }
  return { listed, size };
}

/** Of the canonical form (RFC 8785), which has the length of `JSON.stringify`'s for text and whole numbers. */
function sizeOf(value: JsonObject | string): number {
  return Buffer.byteLength(JSON.stringify(value));
}
