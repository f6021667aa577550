/** Bare repositories in a directory, and a look into them past any server. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { GIT } from '../../foreign/git.js';

export type GitRepository = {
  /** Its name as a path of a url, and its directory. */
  name: string;
  path: string;
  /** Runs git in it and returns what it prints. */
  git(...args: string[]): Promise<string>;
  /** Commits a file to a branch, as somebody else would; makes the branch if it is missing. @returns the commit */
  commit(branch: string, files: Record<string, string>): Promise<string>;
  /** Runs git fast-import on commands, for commits that git's usual commands do not make. */
  fastImport(commands: string): Promise<void>;
  /** Installs a hook, a shell script. */
  hook(name: string, script: string): Promise<void>;
  /** The content of a file of a branch. */
  show(branch: string, file: string): Promise<string>;
  /** The subjects of a branch's commits along first parents, newest first; none if it is missing. */
  subjects(branch: string): Promise<string[]>;
};

const IDENTITY = {
  GIT_AUTHOR_NAME: 'Somebody',
  GIT_AUTHOR_EMAIL: 'somebody@example.com',
  GIT_COMMITTER_NAME: 'Somebody',
  GIT_COMMITTER_EMAIL: 'somebody@example.com',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

/** A directory for repositories, until the test ends. */
export async function makeRepositoriesDirectory(test: Pick<Test, 'teardown'>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'attest-repositories-'));
  test.teardown(() => rm(root, { recursive: true, force: true }));
  return root;
}

/** Makes an empty bare repository that permits pushes over http and partial clones. */
export async function makeRepository(root: string, name: string): Promise<GitRepository> {
  const path = join(root, name);
  await run(root, ['init', '--quiet', '--bare', '--initial-branch=main', path]);
  const git = (...args: string[]) => run(path, args);
  await git('config', 'http.receivepack', 'true');
  await git('config', 'uploadpack.allowFilter', 'true');
  const fastImport = async (commands: string) => void (await run(path, ['fast-import', '--quiet'], commands));
  return {
    name,
    path,
    git,
    fastImport,
    commit: async (branch, files) => {
      const exists = await git('rev-parse', '--verify', '--quiet', `refs/heads/${branch}`).catch(() => '');
      const from = exists === '' ? '' : `from refs/heads/${branch}^0\n`;
      const changes = Object.entries(files).map(([file, text]) => `M 100644 inline ${file}\n${data(text)}`);
      const author = 'committer Somebody <somebody@example.com> 1700000000 +0000';
      const message = data(`Somebody adds ${Object.keys(files).join(', ').slice(0, 50)}`);
      await fastImport(`commit refs/heads/${branch}\n${author}\n${message}${from}${changes.join('')}\n`);
      return git('rev-parse', `refs/heads/${branch}`);
    },
    hook: (hook, script) => writeFile(join(path, 'hooks', hook), `#!/bin/sh\n${script}\n`, { mode: 0o755 }),
    show: (branch, file) => git('cat-file', 'blob', `refs/heads/${branch}:${file}`),
    subjects: async (branch) => {
      const output = await git('log', '--first-parent', '--format=%s', `refs/heads/${branch}`).catch(
        () => '',
      );
      return output === '' ? [] : output.split('\n');
    },
  };
}

/** Data as git-fast-import(1) reads it. */
export function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

async function run(cwd: string, args: string[], input = ''): Promise<string> {
  const env = { ...process.env, ...IDENTITY };
  const child = promisify(execFile)(GIT, args, { cwd, env, maxBuffer: 2 ** 27 });
  // A command that ends without reading closes it.
  child.child.stdin?.on('error', () => {}).end(input);
  const { stdout } = await child;
  return stdout.replace(/\n$/, '');
}
