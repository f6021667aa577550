/** A git server over ssh: OpenSSH's `sshd` on a free port of the loopback address, as the current user. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { GIT } from '../../foreign/git.js';
import { SSHD } from '../../foreign/sshd.js';
import { findFreePort } from '../../servers/free-port.js';
import { until } from '../../until.js';

export type GitSshServer = {
  port: number;
  /** `ssh://user@127.0.0.1:port`. */
  origin: string;
  /** The server's key, as `host_key` has it. */
  hostKey: string;
  /** A private key that may log in. */
  sshKey: string;
  /** Makes another key pair, which may not. */
  makeKey(name: string, passphrase?: string): Promise<{ sshKey: string; publicKey: string }>;
};

/** Serves every repository of this machine, by `git-shell`, until the test ends. */
export async function startGitSsh(test: Test): Promise<GitSshServer> {
  const directory = await mkdtemp(join(tmpdir(), 'attest-sshd-'));
  test.teardown(() => rm(directory, { recursive: true, force: true }));
  const makeKey: GitSshServer['makeKey'] = async (name, passphrase = '') => {
    const file = join(directory, name);
    await promisify(execFile)('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-C', '', '-f', file]);
    const publicKey = (await readFile(`${file}.pub`, 'utf8')).trim();
    return { sshKey: await readFile(file, 'utf8'), publicKey };
  };
  const host = await makeKey('host');
  const user = await makeKey('user');
  await writeFile(join(directory, 'authorized_keys'), `${user.publicKey}\n`);
  const port = await findFreePort();
  await writeFile(join(directory, 'config'), configuration(directory, port));
  // As root sshd insists on a directory for its unprivileged part, and on a user.
  if (process.geteuid?.() === 0) await mkdir('/run/sshd', { recursive: true, mode: 0o755 });
  await writeUsers(join(directory, 'passwd'));
  const daemon = spawn(SSHD, ['-D', '-e', '-f', join(directory, 'config')], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // Read by libnss-wrapper, which a sshd that is not installed has.
    env: {
      ...process.env,
      NSS_WRAPPER_PASSWD: join(directory, 'passwd'),
      NSS_WRAPPER_GROUP: '/etc/group',
    },
  });
  let log = '';
  daemon.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  await once(daemon, 'spawn');
  test.teardown(() => daemon.kill());
  await until('sshd listens', () => {
    if (daemon.exitCode !== null) throw new Error(log);
    return log.includes('Server listening');
  });
  const origin = `ssh://${userInfo().username}@127.0.0.1:${port}`;
  return { port, origin, hostKey: host.publicKey, sshKey: user.sshKey, makeKey };
}

/** The machine's users, and the one of sshd's unprivileged part. */
async function writeUsers(file: string): Promise<void> {
  const users = await readFile('/etc/passwd', 'utf8');
  const own = /^sshd:/m.test(users) ? '' : 'sshd:x:65534:65534::/run/sshd:/bin/false\n';
  await writeFile(file, `${users}${own}`);
}

function configuration(directory: string, port: number): string {
  return [
    'ListenAddress 127.0.0.1',
    `Port ${port}`,
    `HostKey ${join(directory, 'host')}`,
    `AuthorizedKeysFile ${join(directory, 'authorized_keys')}`,
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'AcceptEnv GIT_PROTOCOL',
    `ForceCommand ${join(dirname(GIT), 'git-shell')} -c "$SSH_ORIGINAL_COMMAND"`,
    '',
  ].join('\n');
}
