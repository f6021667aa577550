/** Runs git, for the local repository or with a connection to the remote. */
import { DestinationError } from '../destination.js';
import type { Access, Connection } from './access.js';
import { type CommandResult, runCommand } from './command.js';
import { gitEnvironment } from './environment.js';
import { explain, isLostRace, isNotConnected } from './explain.js';
import type { GitUrl } from './git-url.js';
import type { GitLimits } from './limits.js';

export type GitRunner = {
  readonly directory: string;
  readonly path: string;
  readonly url: GitUrl;
  readonly access: Access;
  readonly limits: GitLimits;
};

type RunOptions = {
  readonly signal: AbortSignal;
  /** The name of the command's work in errors: `the fetch`. */
  readonly what: string;
  readonly input?: AsyncIterable<Uint8Array>;
  readonly totalMs?: number;
  readonly disk?: { readonly path: string; readonly maxBytes: number };
};

/** Another writer moved the branch. */
export class LostRace extends Error {}

const LOCAL: Connection = { settings: {}, variables: {} };
/**
 * Runs a command with a limit of memory in KiB, where the system knows one, and without core dumps, which would put secrets
 * on the disk.
 */
const LIMITED = 'ulimit -v "$1" 2>/dev/null; ulimit -c 0; shift; exec "$@"';
const LOCAL_MS = 600_000;
const LIST_MS = 120_000;

/** Runs git on the local repository. @returns its standard output */
export async function runLocal(
  runner: GitRunner,
  args: readonly string[],
  options: RunOptions,
): Promise<string> {
  const result = await run(runner, LOCAL, args, { totalMs: LOCAL_MS, ...options });
  if (!result.ok) throw failure(runner, result, options.what);
  return result.stdout;
}

/**
 * Runs git with a connection to the remote `origin`, over each of its addresses until one can be connected to.
 *
 * @returns its standard output
 * @throws LostRace if another writer was faster
 */
export async function runRemote(
  runner: GitRunner,
  args: readonly string[],
  options: RunOptions,
): Promise<string> {
  let last: CommandResult | undefined;
  for (const connection of await runner.access.connections()) {
    last = await run(runner, connection, args, { totalMs: LIST_MS, ...options });
    if (last.ok) return last.stdout;
    if (!isNotConnected(last)) break;
  }
  if (last === undefined) throw new DestinationError(`the host ${runner.url.host} has no address`);
  if (isLostRace(last)) throw new LostRace(explain(last, options.what, runner.access.secrets));
  throw failure(runner, last, options.what);
}

function run(
  { directory, path, url, limits }: GitRunner,
  { settings, variables }: Connection,
  args: readonly string[],
  options: RunOptions & { totalMs: number },
): Promise<CommandResult> {
  const env = { ...gitEnvironment({ directory, path, scheme: url.scheme }, settings), ...variables };
  const limited = ['-c', LIMITED, 'sh', String(Math.floor(limits.maxMemoryBytes / 1024)), 'git', ...args];
  return runCommand({
    file: '/bin/sh',
    args: limited,
    env,
    cwd: directory,
    stallMs: limits.stallMs,
    ...options,
  });
}

function failure({ access }: GitRunner, result: CommandResult, what: string): DestinationError {
  return new DestinationError(explain(result, what, access.secrets));
}
