import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';

/** What stands behind the service: one Postgres with a standby, or three under Patroni. */
export type SceneName = 'pair' | 'patroni';

/** How a campaign is run. */
export type Options = {
  scene: SceneName;
  /** How long faults go on; checking comes after. */
  minutes: number;
  seed: string;
  /** Creates a second, all clients together. */
  rate: number;
  clients: number;
  /** Kinds of faults to choose from; all when undefined. */
  only: readonly string[] | undefined;
  proveChecker: boolean;
  json: boolean;
  keep: boolean;
};

export const HELP = `npm run chaos -- [options]
  Two api and two worker processes over a real Postgres and three nats-servers, with clients at work; random faults, alone and
  overlapping; then everything that was acknowledged or shown is checked independently. test/chaos/README.md has more.

  --minutes <n>      how long faults go on, 5 by default; fractions will do
  --seed <text>      the faults of an earlier campaign, in the same order; made up and printed when left out
  --rate <n>         creates a second, 15 by default
  --clients <n>      clients at a time, 12 by default
  --scene <name>     pair, a Postgres with its standby, by default; or patroni, three nodes that fail over by themselves
  --only <kinds>     of the faults that --list prints, separated by commas
  --list             print the kinds of faults
  --prove-checker    afterwards break copies of what was recorded in every way the checker must notice
  --json             print the result as JSON on standard output; progress is on standard error in any case
  --keep             keep the directory with servers' data, logs and records; it is kept anyway when something is wrong
  --help

  Exit codes: 0 everything held, 1 something did not, 2 called wrongly or could not be run. Ctrl-C stops
  everything and removes what was made.`;

/** A command line that cannot be followed. */
export class UsageError extends Error {}

/** What is asked for; `help` and `list` stand alone. Throws UsageError. */
export function readOptions(args: string[]): Options | 'help' | 'list' {
  const values = parse(args);
  if (values.help) return 'help';
  if (values.list) return 'list';
  const scene = values.scene ?? 'pair';
  if (scene !== 'pair' && scene !== 'patroni') throw new UsageError('--scene must be pair or patroni');
  if (scene === 'patroni' && values['prove-checker'])
    throw new UsageError('--prove-checker copies the database of --scene pair');
  return {
    scene,
    minutes: number('minutes', values.minutes, 5),
    seed: values.seed ?? randomBytes(4).toString('hex'),
    rate: number('rate', values.rate, 15),
    clients: Math.ceil(number('clients', values.clients, 12)),
    only: values.only?.split(',').map((kind) => kind.trim()),
    proveChecker: values['prove-checker'] === true,
    json: values.json === true,
    keep: values.keep === true,
  };
}

function parse(args: string[]) {
  try {
    const text = { type: 'string' } as const;
    const flag = { type: 'boolean' } as const;
    return parseArgs({
      args,
      options: {
        minutes: text,
        seed: text,
        rate: text,
        clients: text,
        scene: text,
        only: text,
        list: flag,
        'prove-checker': flag,
        json: flag,
        keep: flag,
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function number(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!(value > 0) || value > 10_000) throw new UsageError(`--${name} must be a number above 0`);
  return value;
}
