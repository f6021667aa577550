import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { provide } from './provide.js';

/** SoftHSM, with OpenSC's `pkcs11-tool`. A test that imports this is skipped where they cannot be had. */
const UTIL = await provide('softhsm');

const execute = promisify(execFile);
/** The tree of the unpacked packages; the machine itself if they are installed. */
const TREE = existsSync(join(dirname(UTIL), '../usr')) ? join(dirname(UTIL), '..') : '/';

/** A token of a software HSM, which ends with the test. */
export type SoftHsm = {
  /** The PKCS#11 module. */
  module: string;
  label: string;
  pinFile: string;
  /** What a process needs in its environment to load the module. */
  env: Record<string, string>;
  /** Makes a key pair in the token: `EC:prime256v1`, `EC:edwards25519`, `rsa:2048`. */
  makeKey(type: string, label: string, id: string): Promise<void>;
};

const PIN = '5678';

/** Makes a token. */
export async function openSoftHsm(test: { teardown(stop: () => Promise<unknown>): void }): Promise<SoftHsm> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-hsm-'));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, 'tokens'));
  const pinFile = join(dir, 'pin');
  await writeFile(pinFile, `${PIN}\n`, { mode: 0o600 });
  const conf = join(dir, 'softhsm2.conf');
  await writeFile(
    conf,
    `directories.tokendir = ${dir}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n`,
  );
  const module = join(TREE, 'usr/lib/softhsm/libsofthsm2.so');
  const env = { SOFTHSM2_CONF: conf, ...(TREE !== '/' && { LD_LIBRARY_PATH: await findLibraries() }) };
  const run = (command: string, ...args: string[]) =>
    execute(join(dirname(UTIL), command), ['--module', module, ...args], { env: { ...process.env, ...env } });
  const label = 'attest';
  await run('softhsm2-util', '--init-token', '--free', '--label', label, '--so-pin', '1234', '--pin', PIN);
  const login = ['--login', '--pin', PIN, '--token-label', label];
  return {
    module,
    label,
    pinFile,
    env,
    makeKey: async (type, name, id) => {
      await run('pkcs11-tool', ...login, '--keypairgen', '--key-type', type, '--label', name, '--id', id);
    },
  };
}

/** The folder of the architecture's libraries. */
async function findLibraries(): Promise<string> {
  const folders = await readdir(join(TREE, 'usr/lib'));
  return join(TREE, 'usr/lib', folders.find((name) => name.endsWith('-linux-gnu')) ?? '');
}
