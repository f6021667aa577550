/** Exports to a branch of a git repository, by the machine's programs `git` and `ssh`. */
import { createSerialQueue } from '../../../core/serial-queue.js';
import { type DestinationContext, DestinationError, type OpenDestination } from '../destination.js';
import { openAccess } from './access.js';
import { DEFAULT_PATH } from './environment.js';
import type { GitRunner } from './git-command.js';
import { findMemberProblem, type GitUrl, parseGitUrl, type Resolve } from './git-url.js';
import { assertGitVersion } from './git-version.js';
import { DEFAULT_LIMITS, type GitLimits } from './limits.js';
import { makePrivateDirectory, type PrivateDirectory } from './private-directory.js';
import { openRepository } from './repository.js';
import { type Target, writeObject, writeProbe } from './write.js';

/** The operator's settings of git destinations. */
export type GitOptions = {
  /** PEM file of certificate authorities to trust beside those of Node, as with `NODE_EXTRA_CA_CERTS`. */
  readonly caFile?: string | undefined;
  /** The directories with `git` and `ssh`, separated by colons. */
  readonly path?: string | undefined;
  readonly limits?: Partial<GitLimits>;
  /** Resolves all addresses of a name. */
  readonly resolve?: Resolve;
  /** Between 0 and 1, for the delays between attempts. */
  readonly random?: () => number;
};

/**
 * Opens a branch of a git repository. Makes temporary files and connects to nothing. Rejects with `DestinationError` if
 * the destination is forbidden or the machine lacks a suitable git.
 */
export async function openGit(
  context: DestinationContext,
  options: GitOptions = {},
): Promise<OpenDestination> {
  const { destination } = context;
  const url = parseGitUrl(context, destination.url);
  if (typeof url === 'string') throw new DestinationError(url);
  const problem = findMemberProblem(url, destination);
  if (problem !== undefined) throw new DestinationError(problem);
  const directory = await makePrivateDirectory(context.temporaryDirectory).catch(unwritable);
  try {
    const runner = await openRunner(context, options, url, directory.path);
    const branch = destination.branch === '' ? 'main' : destination.branch;
    const { random = Math.random } = options;
    const { maxAttempts } = runner.limits;
    const target = { repository: openRepository(runner, branch), branch, maxAttempts, random };
    return makeDestination(context, target, directory);
  } catch (error) {
    await directory.remove();
    throw error;
  }
}

async function openRunner(
  { destination, allowInsecure }: DestinationContext,
  { caFile, path = DEFAULT_PATH, resolve, limits: given }: GitOptions,
  url: GitUrl,
  directory: string,
): Promise<GitRunner> {
  const limits = { ...DEFAULT_LIMITS, ...given };
  const { stallMs } = limits;
  await assertGitVersion({ path, directory, stallMs }, url.scheme);
  const access = await openAccess(
    { directory, url, allowInsecure, resolve, caFile, stallMs },
    destination,
  ).catch(unwritable);
  return { directory, path, url, access, limits };
}

function unwritable(cause: NodeJS.ErrnoException): never {
  if (cause instanceof DestinationError) throw cause;
  const message = `the service's machine cannot write its temporary files (${cause.code ?? cause.message})`;
  throw new DestinationError(message, { cause });
}

/** Calls run one after the other: they share the local repository. `close` aborts them. */
function makeDestination(
  { destination, exportId }: DestinationContext,
  target: Target,
  directory: PrivateDirectory,
): OpenDestination {
  const closing = new AbortController();
  const queue = createSerialQueue();
  const enqueue = <T>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const either = AbortSignal.any([signal, closing.signal]);
    return queue(() => call(either)).catch((error: Error) => {
      if (!either.aborted || error instanceof DestinationError) throw error;
      throw new DestinationError('the write was aborted', { cause: error });
    });
  };
  const probePath = [destination.prefix, exportId, 'probe'].filter(Boolean).join('/');
  return {
    write: (object, { signal, isCurrent }) =>
      enqueue(signal, (either) => writeObject(target, object, { signal: either, isCurrent })),
    probe: (signal) => enqueue(signal, (either) => writeProbe(target, probePath, either)),
    close: async () => {
      closing.abort();
      await queue(async () => {});
      await directory.remove();
    },
  };
}
