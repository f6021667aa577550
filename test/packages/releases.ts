/** Releases of the command line, servers of them, and machines that install them by install-attest.sh. */
import { execFileSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import type { Test } from 'tap';
import { writeInstallScript } from '../../src/generate/packages/install-script.js';
import { type Ended, execute } from './install.js';

/** A release: its tarball, and the script that installs it. */
export type Release = { version: string; tarball: string; script: string };

/** A folder that every user may read, and that is removed after the test. */
export function newFolder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'attest-install-'));
  chmodSync(dir, 0o755);
  t.teardown(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** A release of a program that prints its version, with a script like that of `npm run pack`. */
export function makeRelease(
  t: Test,
  version: string,
  { program = `#!/bin/sh\necho ${version}\n`, repository }: { program?: string; repository?: object } = {},
): Release {
  const dir = newFolder(t);
  const main = join(dir, 'package/dist/attest/main.js');
  mkdirSync(join(main, '..'), { recursive: true });
  writeFileSync(main, program);
  const tarball = join(dir, `attestation-service-cli-${version}.tgz`);
  execFileSync('tar', ['-czf', tarball, '-C', dir, 'package']);
  const root = join(dir, 'root');
  mkdirSync(join(root, 'src/generate/packages'), { recursive: true });
  writeFileSync(join(root, 'package.json'), JSON.stringify({ version, repository }));
  const source = 'src/generate/packages/install-attest.sh';
  writeFileSync(join(root, source), readFileSync(source));
  return { version, tarball, script: writeInstallScript({ root, out: dir }, tarball) };
}

/** A server of the release's tarball. Returns its address. `answer` sends something else. */
export async function serve(
  t: Test,
  { tarball }: Release,
  answer = (response: ServerResponse, bytes: Buffer): void => void response.end(bytes),
): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === `/v/${basename(tarball)}`) answer(response, readFileSync(tarball));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v`;
}

type Run = { args?: readonly string[]; url?: string; path?: string; uid?: number; gid?: number };

/** Runs the script of a release, which installs to the folder `bin` of `home`, as a pipe does: `… | sh -s -- ARGS`. */
export function install(
  { script }: Release,
  home: string,
  { args = [], url = '', path, ...user }: Run,
): Promise<Ended> {
  const env = { PATH: path ?? process.env.PATH, HOME: home, ATTEST_DOWNLOAD_URL: url };
  const command = 'script=$1; shift; cat "$script" | sh -s -- "$@"';
  const all = ['-c', command, 'sh', script, '--dir', join(home, 'bin'), ...args];
  return execute('sh', all, { cwd: home, env, ...user });
}

/** What the installed program prints as its version. */
export async function installedVersion(home: string): Promise<string> {
  const { stdout } = await execute(join(home, 'bin/attest'), ['--version'], { cwd: home, env: process.env });
  return stdout.trim();
}

/** A folder with version 1.0.0 installed, and how to see that it is as it was. */
export async function withInstalled(t: Test): Promise<{ home: string; assertUntouched(): Promise<void> }> {
  const home = newFolder(t);
  const release = makeRelease(t, '1.0.0');
  t.match(await install(release, home, { args: ['--file', release.tarball] }), { code: 0 });
  const list = () => readdirSync(home, { recursive: true }).map(String).sort();
  const before = list();
  return {
    home,
    assertUntouched: async () => {
      t.same(list(), before);
      t.equal(await installedVersion(home), '1.0.0');
    },
  };
}

const TOOLS = 'sh env node tar gzip sha256sum cut readlink mktemp chmod ln mv rm mkdir cat curl'.split(' ');

/** A folder for PATH with the programs that the script needs, without some, and with others in the place of some. */
export function pathWith(t: Test, { lacks = [], adds = [], fakes = {} }: Machine): string {
  const dir = join(newFolder(t), 'path');
  mkdirSync(dir);
  const names = [...TOOLS.filter((name) => !lacks.includes(name) && !(name in fakes)), ...adds];
  for (const name of names) symlinkSync(findProgram(name), join(dir, name));
  for (const [name, script] of Object.entries(fakes)) {
    writeFileSync(join(dir, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(dir, name), 0o755);
  }
  return dir;
}

type Machine = {
  lacks?: readonly string[];
  adds?: readonly string[];
  fakes?: Readonly<Record<string, string>>;
};

function findProgram(name: string): string {
  if (name === 'node') return process.execPath;
  const found = (process.env.PATH ?? '').split(delimiter).find((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error(`there is no ${name} in PATH`);
  return join(found, name);
}
