/**
 * A local bare repository that holds as little of the remote's branch as a commit on top of it needs: its newest commit and
 * that commit's trees. There is no work tree, so no content of the remote becomes a file, let alone a program.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DestinationError } from '../destination.js';
import { type GitRunner, LostRace, runLocal, runRemote } from './git-command.js';
import { measureDirectory } from './measure-directory.js';

/** The new content of a path: a blob, by its name in git. */
export type File = {
  readonly path: string;
  readonly blob: string;
  readonly bytes: number;
  read(): AsyncIterable<Uint8Array>;
};

export type Repository = {
  /** Fetches the branch. @returns its newest commit; undefined if there is no such branch yet */
  fetchHead(signal: AbortSignal): Promise<string | undefined>;
  /** Whether a commit has the file. Rejects if something that is not a file is in its place. */
  contains(head: string, file: File, signal: AbortSignal): Promise<boolean>;
  /** The message of a commit. */
  readMessage(commit: string, signal: AbortSignal): Promise<string>;
  /** Makes a commit that puts the file on top of `head`. */
  commit(head: string | undefined, file: File, message: string, signal: AbortSignal): Promise<string>;
  /** Makes a commit the branch's newest, if its parent is the present one. @throws LostRace if it is not */
  push(commit: string, signal: AbortSignal): Promise<void>;
};

const HEAD = 'refs/export/head';
const NEXT = 'refs/export/next';
const AUTHOR = 'attestation-service <noreply@attestation-service.invalid>';
const TREE = '040000';
const REGULAR_FILE = '100644';
const COMMIT = /^[0-9a-f]{40}$/;

/** The commits and blobs that are in the local repository for sure. */
type Known = {
  head: string | undefined;
  blob: string | undefined;
  /** The size at which the repository is recreated; undefined before the first fetch. */
  maxBytes: number | undefined;
};

/** Opens the repository: creates it on first use, and again after an error or beyond its maximum size. */
export function openRepository(runner: GitRunner, branch: string): Repository {
  const known: Known = { head: undefined, blob: undefined, maxBytes: undefined };
  const ref = `refs/heads/${branch}`;
  const discardOnError = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      // A process that was killed leaves locks.
      if (!(error instanceof LostRace)) known.maxBytes = undefined;
      throw error;
    }
  };
  return {
    fetchHead: (signal) => discardOnError(fetchHead(runner, known, ref, signal)),
    contains: (head, file, signal) => discardOnError(contains(runner, head, file, signal)),
    readMessage: (commit, signal) => discardOnError(readMessage(runner, commit, signal)),
    commit: (head, file, message, signal) =>
      discardOnError(makeCommit(runner, known, { head, file, message }, signal)),
    push: async (commit, signal) => {
      await discardOnError(pushCommit(runner, commit, ref, signal));
      known.head = commit;
    },
  };
}

async function fetchHead(
  runner: GitRunner,
  known: Known,
  ref: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  await prepare(runner, known, signal);
  const head = await listHead(runner, ref, signal);
  if (head === undefined || head === known.head) return head;
  const isFirst = known.head === undefined;
  known.head = await fetchBranch(runner, ref, signal);
  // Another fetch would bring the same objects again.
  if (isFirst) known.maxBytes = (await measureDirectory(pathOf(runner))) + runner.limits.maxRepositoryBytes;
  return known.head;
}

async function prepare(runner: GitRunner, known: Known, signal: AbortSignal): Promise<void> {
  const path = pathOf(runner);
  if (known.maxBytes !== undefined && (await measureDirectory(path)) <= known.maxBytes) return;
  Object.assign(known, { head: undefined, blob: undefined, maxBytes: undefined });
  await rm(path, { recursive: true, force: true });
  await runLocal(runner, ['init', '--quiet', '--bare', '--template=', '--object-format=sha1'], {
    signal,
    what: 'git init',
  });
  known.maxBytes = runner.limits.maxRepositoryBytes;
}

function pathOf({ directory }: GitRunner): string {
  return join(directory, 'repository');
}

async function listHead(runner: GitRunner, ref: string, signal: AbortSignal): Promise<string | undefined> {
  const output = await runRemote(runner, ['ls-remote', 'origin', ref], {
    signal,
    what: 'reading the branch',
  });
  // The pattern also matches names that end in it.
  const line = output.split('\n').find((each) => each.endsWith(`\t${ref}`));
  const head = line?.slice(0, line.indexOf('\t'));
  if (head !== undefined && !COMMIT.test(head))
    throw new DestinationError('repositories with SHA-256 object names are not supported');
  return head;
}

/** Fetches one commit and its trees. A server without support of filters sends the files too. */
async function fetchBranch(runner: GitRunner, ref: string, signal: AbortSignal): Promise<string> {
  const { fetchMs, maxFetchBytes } = runner.limits;
  const bounds = ['--depth=1', '--filter=blob:none', '--no-tags', '--no-recurse-submodules'];
  const args = ['fetch', '--progress', '--no-write-fetch-head', ...bounds, 'origin', `+${ref}:${HEAD}`];
  const disk = { path: pathOf(runner), maxBytes: maxFetchBytes };
  await runRemote(runner, args, { signal, what: 'the fetch', totalMs: fetchMs, disk });
  const what = 'reading the fetched commit';
  return (await runLocal(runner, ['rev-parse', '--verify', `${HEAD}^{commit}`], { signal, what })).trim();
}

async function contains(runner: GitRunner, head: string, file: File, signal: AbortSignal): Promise<boolean> {
  // With -t the folders on the way are listed too.
  const entries = await listTree(runner, ['-t', head, '--', file.path], signal);
  const isThere = entries.at(-1)?.path === file.path;
  const folders = isThere ? entries.slice(0, -1) : entries;
  const next = file.path.split('/', folders.length + 1).join('/');
  const last = isThere ? entries.at(-1) : (await listTree(runner, [head, '--', next], signal))[0];
  const blocks = last !== undefined && (last.mode === TREE || last.path !== file.path);
  if (blocks) throw inTheWay(last.path);
  return last?.mode === REGULAR_FILE && last.object === file.blob;
}

type TreeEntry = { mode: string; object: string; path: string };

async function listTree(runner: GitRunner, args: string[], signal: AbortSignal): Promise<TreeEntry[]> {
  const output = await runLocal(runner, ['ls-tree', '-z', ...args], { signal, what: 'reading the tree' });
  const entries = output.matchAll(/(\d+) [a-z]+ ([0-9a-f]+)\t([^\0]*)\0/g);
  return [...entries].map(([, mode = '', object = '', path = '']) => ({ mode, object, path }));
}

function inTheWay(path: string): DestinationError {
  return new DestinationError(
    `in the branch, ${path} is in the way of the objects: move it, or use another prefix`,
  );
}

async function readMessage(runner: GitRunner, commit: string, signal: AbortSignal): Promise<string> {
  const output = await runLocal(runner, ['cat-file', 'commit', commit], {
    signal,
    what: 'reading the commit',
  });
  return output.slice(output.indexOf('\n\n') + 2);
}

type NewCommit = { head: string | undefined; file: File; message: string };

async function makeCommit(
  runner: GitRunner,
  known: Known,
  commit: NewCommit,
  signal: AbortSignal,
): Promise<string> {
  const { blob } = commit.file;
  const input = importStream(commit, known.blob === blob);
  const args = ['fast-import', '--quiet', '--force', '--date-format=now', '--cat-blob-fd=1'];
  const made = (await runLocal(runner, args, { signal, what: 'the commit', input })).trim();
  if (!COMMIT.test(made)) throw new DestinationError('git made no commit');
  known.blob = blob;
  return made;
}

/** The commands of git-fast-import(1). `done` marks the complete end. */
async function* importStream(
  { head, file, message }: NewCommit,
  hasBlob: boolean,
): AsyncGenerator<Uint8Array> {
  const from = head === undefined ? '' : `from ${head}\n`;
  const commit = `commit ${NEXT}\nmark :1\ncommitter ${AUTHOR} now\n${data(message)}\n${from}`;
  yield Buffer.from(`feature done\n${commit}M 100644 ${hasBlob ? file.blob : 'inline'} ${file.path}\n`);
  if (!hasBlob) {
    yield Buffer.from(`data ${file.bytes}\n`);
    yield* file.read();
  }
  yield Buffer.from('\nget-mark :1\ndone\n');
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}`;
}

/** Pushes without force: the server takes the commit only if its parent is still the branch's newest commit. */
async function pushCommit(
  runner: GitRunner,
  commit: string,
  ref: string,
  signal: AbortSignal,
): Promise<void> {
  // Not thin: git would look for files to base deltas on, which are not here.
  const args = ['push', '--progress', '--porcelain', '--no-thin', 'origin', `${commit}:${ref}`];
  await runRemote(runner, args, { signal, what: 'the push', totalMs: runner.limits.pushMs });
}
