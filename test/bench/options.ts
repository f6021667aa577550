import { parseArgs } from 'node:util';
import { COMPARED } from './figures.js';

const MEASURES = [
  'create',
  'batch',
  'peers',
  'keyed',
  'paced',
  'traced',
  'processes',
  'read',
  'bundle',
  'cold',
  'proofs',
  'list',
  'plans',
  'seal',
  'witnessed',
  'cadence',
  'webhooks',
  'exports',
  'hostile',
  'surfaces',
  'audit',
  'files',
  'client',
] as const;
export type MeasureName = (typeof MEASURES)[number];

/** What to measure and for how long. */
export type Options = {
  only: readonly MeasureName[];
  rounds: number;
  /** Of each contender in each round. */
  seconds: number;
  /** Of each contender before: V8 compiles what creates run for about 7 s under load, on two slow cores. */
  warmUpSeconds: number;
  /** Leaves that are sealed in each round. */
  sealLeaves: number;
  witnessedSeconds: number;
  /** Events that are sent in each round. */
  deliveries: number;
  /** The simulated time of witnesses' calls. */
  hours: number;
  /** Witnessed submissions that are in the tables before anything is measured. */
  rows: number;
  /** The same, and the sizes of further logs that `cold` and `proofs` measure. */
  sizes: readonly number[];
  /** Files that `client` makes a set of, and the most of anything else that it makes. */
  files: number;
  jsonFile: string | undefined;
  /** The commit, or the start of its id, that figures are compared with; empty for the newest entry. */
  compareWith: string | undefined;
  /** Whether the figures are appended to test/bench/figures.json. */
  record: boolean;
  /** Only attacks whose name has this in it are run. */
  attack: string | undefined;
  /** The `main.js` of another build: attacked in place of this one, or compared with it. */
  program: string | undefined;
  /** Idempotency keys of the large table that `keyed` makes. */
  keys: number;
  /** Only the service and what it is held against, for figures that are compared between commits. */
  compared: boolean;
  /** Where processor profiles of the API process go; none are taken when undefined. */
  profileDir: string | undefined;
};

export const HELP = `npm run bench -- [options]
  --only <names>    of ${MEASURES.join(', ')}, separated by commas; all but peers and surfaces by default;
                    batch submits many in a call; peers compares with Tessera's POSIX log, and needs Go; keyed creates over a
                    new, a small and a large table of keys; paced creates 200 and 2,000 a second, with and without the request log;
                    traced creates without telemetry, with 1 % traced and with all;
                    processes compares one API process with two; cold reads more
                    submissions than are kept, in logs of several sizes; proofs makes proofs and bundles that are not kept,
                    without HTTP; plans prints what Postgres does for lists; cadence simulates hours of ten witnesses, and
                    counts the requests to each; hostile runs attacks and prints what they cost; audit reads a log of as
                    many rows; files counts the source files each way enters; client runs commands of attest
                    on files, reports and logs that it makes
  --attack <text>   of the attacks only those whose name has this in it
  --program <path>  attack this main.js of another version, or compare surfaces with it
  --quick           two short rounds: says that it runs, not how fast
  --rounds <n>      3 by default
  --seconds <s>     of each contender in a round, 3 by default
  --hours <n>       that cadence simulates, 2 by default (1 with --quick)
  --rows <n>        witnessed submissions in the tables before, 50000 by default; 10000000 takes minutes and 10 GB.
                    Several sizes, separated by commas: cold and proofs measure a log of each in turns, beside the first
                    (50000,1000000 by default), all else the first
  --files <n>       that client makes a set of, 100000 by default (1000 with --quick); further rows have at most as many
  --compare         measure create, read and bundle only, and print them beside the newest entry of test/bench/figures.json:
                    what changed by more than 5 %, as a share of the bare handler's cost, and how much the rounds differ
  --with <commit>   compare with the entry of that commit instead
  --record          measure the same and append the figures of the present commit to that file
  --json <file>     also write the figures there
  --profile <dir>   also write .cpuprofile files of the API process there, and print what a request took of each of
                    its threads, and of the main thread by what ran`;

/** Reads the command line. Throws an Error that says what is wrong; undefined when help is wanted. */
export function readOptions(args: string[]): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', short: 'h' },
      quick: { type: 'boolean' },
      only: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      rows: { type: 'string' },
      files: { type: 'string' },
      hours: { type: 'string' },
      json: { type: 'string' },
      compare: { type: 'boolean' },
      with: { type: 'string' },
      record: { type: 'boolean' },
      attack: { type: 'string' },
      program: { type: 'string' },
      profile: { type: 'string' },
    },
  });
  if (values.help) return undefined;
  const quick = values.quick === true;
  const compared = values.compare === true || values.with !== undefined || values.record === true;
  if (compared && values.only !== undefined)
    throw new Error(`--compare and --record measure ${COMPARED.join(', ')}: leave out --only`);
  const sizes = readSizes(values.rows, quick ? [20_000, 60_000] : [50_000, 1_000_000]);
  return {
    only: compared
      ? COMPARED
      : (values.only?.split(',').map(measureName) ??
        MEASURES.filter((name) => name !== 'peers' && name !== 'surfaces')),
    rounds: wholeNumber('rounds', values.rounds, quick ? 2 : 3),
    seconds: wholeNumber('seconds', values.seconds, quick ? 1 : 3),
    warmUpSeconds: quick ? 1 : 10,
    sealLeaves: quick ? 20_000 : 100_000,
    witnessedSeconds: quick ? 4 : 20,
    hours: wholeNumber('hours', values.hours, quick ? 1 : 2),
    deliveries: quick ? 4_000 : 20_000,
    rows: sizes[0] ?? 1,
    sizes,
    files: Math.max(1, wholeNumber('files', values.files, quick ? 1_000 : 100_000)),
    jsonFile: values.json,
    attack: values.attack,
    program: values.program,
    compared,
    keys: quick ? 20_000 : 300_000,
    compareWith: values.compare || values.with !== undefined ? (values.with ?? '') : undefined,
    record: values.record === true,
    profileDir: values.profile,
  };
}

function measureName(name: string): MeasureName {
  const found = MEASURES.find((measure) => measure === name);
  if (found === undefined) throw new Error(`there is no measure ${name}; there are ${MEASURES.join(', ')}`);
  return found;
}

function readSizes(text: string | undefined, otherwise: readonly number[]): readonly number[] {
  const sizes = text?.split(',').map((size) => Math.max(1, wholeNumber('rows', size, 1))) ?? otherwise;
  return [...new Set(sizes)];
}

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number`);
  return Number(text);
}
