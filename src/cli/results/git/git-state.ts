/** The state of the working tree for --git, as git itself reports it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Env } from '../../../config/settings.js';
import { UsageError } from '../../cli.js';
import { remoteUrl } from './remote-url.js';

/** Commit and working tree. */
export type GitState = {
  /** In hex. */
  readonly commit: string;
  /** Undefined if HEAD is detached, as most CI systems have it. */
  readonly branch: string | undefined;
  /** Whether tracked files, staged or not, differ from the commit. */
  readonly dirty: boolean;
  /** Whether there are files that are neither tracked nor ignored. */
  readonly untracked: boolean;
  /** URL of the remote without credentials, as in `https://host/path`; undefined if there is none, or a local one. */
  readonly remote: string | undefined;
};

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Not the repository's own file system monitor, which is a program; and no lock that disturbs another git. */
const OPTIONS = ['--no-optional-locks', '-c', 'core.fsmonitor=false'];

/**
 * Reads the state of the working tree around `folder` by running git. Throws UsageError, with git's own words, if there is no
 * git, no repository, no commit yet, or the repository belongs to another user.
 */
export async function readGitState(env: Env, folder: string): Promise<GitState> {
  const status = await runGit(env, folder, ['status', '--porcelain=v2', '--branch', '-z']);
  const state = parseStatus(status);
  const remotes = await runGit(env, folder, ['config', '-z', '--get-regexp', '^remote\\..*\\.url$'], [1]);
  return { ...state, remote: findRemote(remotes) };
}

/** Parses the output of `git status --porcelain=v2 --branch -z`. */
function parseStatus(output: string): Omit<GitState, 'remote'> {
  const [, commit = ''] = /(?:^|\0)# branch\.oid ([^\0]*)/.exec(output) ?? [];
  const [, branch] = /(?:^|\0)# branch\.head ([^\0]*)/.exec(output) ?? [];
  if (!/^[0-9a-f]{40,64}$/.test(commit))
    throw new UsageError('--git: the repository has no commit yet: commit first, or leave out --git');
  const records = output.split('\0');
  return {
    commit,
    branch: branch === '(detached)' ? undefined : branch,
    // Of a renamed file the next record is its former path, which counts as much.
    dirty: records.some((record) => /^[12u] /.test(record)),
    untracked: records.some((record) => record.startsWith('? ')),
  };
}

/** The URL of `origin`, or of the only remote. */
function findRemote(output: string): string | undefined {
  const remotes = output
    .split('\0')
    .map((record) => /^remote\.(.*)\.url\n(.*)$/s.exec(record) ?? [])
    .flatMap(([, name, url]) => (name === undefined || url === undefined ? [] : { name, url }));
  const chosen =
    remotes.find(({ name }) => name === 'origin') ?? (remotes.length === 1 ? remotes[0] : undefined);
  return chosen && remoteUrl(chosen.url);
}

async function runGit(env: Env, cwd: string, args: readonly string[], quiet: number[] = []): Promise<string> {
  const options = {
    cwd,
    env: { ...env, LC_ALL: 'C' },
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  };
  try {
    const { stdout } = await promisify(execFile)('git', [...OPTIONS, ...args], options);
    return stdout;
  } catch (error) {
    const failed = error as Error & { code?: number | string; killed?: boolean; stderr?: string };
    if (typeof failed.code === 'number' && quiet.includes(failed.code)) return '';
    throw new UsageError(`--git: ${reasonOf(failed)}`);
  }
}

function reasonOf({
  code,
  killed,
  stderr = '',
  message,
}: Error & { code?: unknown; killed?: boolean; stderr?: string }) {
  if (code === 'ENOENT') return 'there is no program git on the PATH: install it, or leave out --git';
  if (killed) return `git took longer than ${TIMEOUT_MS / 1000} s or printed too much`;
  const [line = message] = stderr.split('\n').filter((each) => each !== '');
  const hint = stderr.includes('safe.directory')
    ? ' (run git config --global --add safe.directory with its path)'
    : '';
  return `git cannot read the repository: ${line.replace(/^fatal: /, '')}${hint}`;
}
