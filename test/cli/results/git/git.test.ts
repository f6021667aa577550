/** `--git`: what git reports of the working tree, and where metadata has it. */
import '../../../support/foreign/git.js';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { gitResource, withVcsUrl } from '../../../../src/cli/results/git/git-metadata.js';
import { type GitState, readGitState } from '../../../../src/cli/results/git/git-state.js';
import { remoteUrl } from '../../../../src/cli/results/git/remote-url.js';
import { withGit } from '../../../../src/cli/results/git/with-git.js';

const { PATH = '' } = process.env;

/** A repository with one commit, and git in its folder; nothing of this machine's configuration takes part. */
function repository(t: Test) {
  const home = t.testdir();
  const dir = join(home, 'repo');
  mkdirSync(dir);
  const env = { PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: dirname(home) };
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: dir,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .toString()
      .trim();
  const write = (name: string, text = name) => writeFileSync(join(dir, name), text);
  git('init', '-q', '-b', 'main');
  return { home, dir, env, git, write, read: (folder = dir) => readGitState(env, folder) };
}

function committed(t: Test) {
  const repo = repository(t);
  repo.write('a');
  repo.git('add', 'a');
  repo.git('commit', '-qm', 'one');
  return { ...repo, commit: repo.git('rev-parse', 'HEAD') };
}

t.test('a clean tree, an untracked file, a change, a staged one, a renamed one', async (t) => {
  const { git, write, read, commit, dir } = committed(t);
  const clean = { commit, branch: 'main', dirty: false, untracked: false, remote: undefined };
  t.same(await read(), clean);
  write('new');
  t.same(await read(), { ...clean, untracked: true });
  write('.gitignore', 'new\n.gitignore\n');
  t.same(await read(), clean, 'ignored files do not count');
  write('a', 'changed');
  t.same(await read(), { ...clean, dirty: true });
  git('add', 'a');
  t.same(await read(), { ...clean, dirty: true });
  git('reset', '-q', '--hard');
  git('mv', 'a', '? b');
  t.same(await read(), { ...clean, dirty: true });
  git('reset', '-q', '--hard');
  mkdirSync(join(dir, 'folder'));
  t.same(await read(join(dir, 'folder')), clean, 'from a folder in it');
});

t.test('a detached HEAD, a worktree, and a shallow clone have a commit', async (t) => {
  const { home, git, read, commit } = committed(t);
  git('checkout', '-q', '--detach');
  t.match(await read(), { commit, branch: undefined });
  git('worktree', 'add', '-q', '-b', 'feature/ä', join(home, 'tree'));
  t.match(await read(join(home, 'tree')), { commit, branch: 'feature/ä', dirty: false });
  git('clone', '-q', '--depth', '1', `file://${join(home, 'repo')}`, join(home, 'shallow'));
  t.match(await read(join(home, 'shallow')), { commit, remote: undefined }, 'a local remote is not recorded');
});

t.test('where there is no commit the error names the reason', async (t) => {
  const { home, env, dir, read } = repository(t);
  await t.rejects(read(), { name: 'UsageError', message: /^--git: the repository has no commit yet/ });
  await t.rejects(read(home), { message: /cannot read the repository: not a git repository/ });
  await t.rejects(readGitState({ ...env, PATH: home }, dir), {
    message: /there is no program git on the PATH/,
  });
  await t.rejects(readGitState({ ...env, GIT_TEST_ASSUME_DIFFERENT_OWNER: '1' }, dir), {
    message: /detected dubious ownership .*git config --global --add safe\.directory/,
  });
});

t.test('no program that the repository names is run', async (t) => {
  const { home, dir, git, read } = committed(t);
  const program = join(home, 'monitor');
  writeFileSync(program, `#!/bin/sh\ntouch ${join(home, 'was-run')}\n`);
  chmodSync(program, 0o755);
  git('config', 'core.fsmonitor', program);
  await read();
  t.throws(() => execFileSync('ls', [join(home, 'was-run')], { stdio: 'ignore' }), dir);
});

t.test('the URL of the remote is that of origin, or of the only one', async (t) => {
  const { git, read } = committed(t);
  git('remote', 'add', 'upstream', 'https://example.com/a.git');
  t.match(await read(), { remote: 'https://example.com/a.git' });
  git('remote', 'add', 'fork', 'https://example.com/b.git');
  t.match(await read(), { remote: undefined });
  git('remote', 'add', 'origin', 'https://x-token:s3cret@example.com/c.git');
  const state = await read();
  t.match(state, { remote: 'https://example.com/c.git' });
  t.notMatch(JSON.stringify(state), /s3cret|x-token/);
});

t.test('no part of a remote that may be a credential is kept', async (t) => {
  const cases: [remote: string, url: string | undefined][] = [
    ['https://github.com/acme/shop.git', 'https://github.com/acme/shop.git'],
    ['https://ghp_s3cret@github.com/acme/shop', 'https://github.com/acme/shop'],
    ['https://user:s3cret@host.example:8443/a/b.git/', 'https://host.example:8443/a/b.git'],
    ['https://user:s3c@ret@host.example/a', 'https://host.example/a'],
    ['https://host.example/a?private_token=s3cret#s3cret', 'https://host.example/a'],
    ['HTTPS://user:s3cret@HOST.example/a', 'https://host.example/a'],
    ['git@github.com:acme/shop.git', 'ssh://github.com/acme/shop.git'],
    ['user:s3cret@host.example:a/b', 'ssh://host.example/a/b'],
    ['s3cret@[2001:db8::1]:a/b.git', 'ssh://[2001:db8::1]/a/b.git'],
    ['host.example:/srv/a.git', 'ssh://host.example/srv/a.git'],
    ['ssh://git:s3cret@host.example:2222/a.git', 'ssh://host.example:2222/a.git'],
    ['git://host.example/a.git', 'git://host.example/a.git'],
    ['/home/s3cret/a.git', undefined],
    ['../a', undefined],
    ['C:\\s3cret\\a', undefined],
    ['C:/s3cret/a', undefined],
    ['file:///home/s3cret/a.git', undefined],
    ['ext::sh -c s3cret', undefined],
    ['https://', undefined],
    ['', undefined],
  ];
  for (const [remote, url] of cases) {
    const found = remoteUrl(remote);
    t.equal(found, url, remote);
    t.notMatch(found ?? '', /s3c/);
  }
});

const STATE: GitState = {
  commit: 'ab'.repeat(20),
  branch: 'main',
  dirty: true,
  untracked: false,
  remote: 'https://github.com/acme/shop',
};

t.test('a test result has the state in its configuration, a purl the URL with the commit', async (t) => {
  const uri = `git+https://github.com/acme/shop@${STATE.commit}`;
  const resource = {
    name: 'git',
    uri,
    digest: { gitCommit: STATE.commit },
    annotations: { branch: 'main', dirty: true, untracked: false },
  };
  t.same(gitResource(STATE), resource);
  const { uri: _, ...local } = resource;
  const detached = { ...STATE, branch: undefined, remote: undefined };
  t.same(gitResource(detached), { ...local, annotations: { dirty: true, untracked: false } });
  const result = { schema: 'intoto.test_result.v0.1', result: 'PASSED', configuration: [{ name: 'a' }] };
  t.same(withGit(result, STATE), { ...result, configuration: [{ name: 'a' }, resource] });
  t.same(withGit({ schema: 'purl', purl: 'pkg:generic/a@1?x=y#b' }, STATE), {
    schema: 'purl',
    purl: `pkg:generic/a@1?vcs_url=git%2Bhttps%3A%2F%2Fgithub.com%2Facme%2Fshop%40${STATE.commit}&x=y#b`,
  });
  const git = withVcsUrl('pkg:generic/a', { ...STATE, remote: 'git://host.example/a' });
  t.match(git, 'vcs_url=git%3A%2F%2Fhost.example%2Fa%40abab');
  t.equal(withGit(result, undefined), result);
});

t.test('an evaluation and a snapshot have the state as their revision, unless the log has one', async (t) => {
  const revision = { type: 'git', origin: STATE.remote, commit: STATE.commit, dirty: STATE.dirty };
  for (const schema of ['evaluation.v1', 'ui_snapshot.v1']) {
    t.same(withGit({ schema, a: 1 }, STATE), { schema, a: 1, revision });
    t.notOk('origin' in (withGit({ schema }, { ...STATE, remote: undefined }).revision as object));
    const message = '--git: the log has recorded the revision that was run';
    t.throws(() => withGit({ schema, revision: { commit: 'b' } }, STATE), { name: 'UsageError', message });
  }
});

t.test('metadata without a place for it is an error', async (t) => {
  t.throws(() => withVcsUrl('pkg:generic/a', { ...STATE, remote: undefined }), {
    message: /no remote origin/,
  });
  t.throws(() => withVcsUrl('pkg:generic/a?vcs_url=x', STATE), { message: /has a vcs_url already/ });
  t.throws(() => withGit({ schema: 'acme.v1' }, STATE), {
    message: /no place in metadata of schema acme\.v1/,
  });
});
