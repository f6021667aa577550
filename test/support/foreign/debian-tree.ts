/** Programs in the tree of their unpacked Debian packages, with the libraries that they need. */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cached, openCacheDir } from '../../../src/server/embedded/cache.js';
import {
  type Apt,
  aptWithNewLists,
  releaseSpecific,
  systemApt,
  unpackPackages,
} from '../../../src/server/embedded/debian-package.js';
import type { Program } from './programs.js';

/** The folder of the commands in a tree. */
const COMMANDS = 'commands';

/** The name of the processor in Debian's folders of libraries. */
const MULTIARCH = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }[process.arch as string] ?? '';

/** Packages that come with what they are named by, and those of the C library, which every program of the system shares. */
const BROUGHT = /^(?:lib|python3)/;
const LEFT_OUT = /^(?:libc6|libc-bin|libllvm\d+|libperl.*|libpython.*-dev)$/;

/**
 * Returns the folder of a program's commands in the cache, after having downloaded and unpacked its packages if it is not
 * there. Throws where apt cannot have them.
 */
export async function fetchProgram(name: string, program: Program): Promise<string> {
  const version = createHash('sha256').update(JSON.stringify(program)).digest('hex').slice(0, 8);
  const cacheDir = await openCacheDir();
  const entry = await releaseSpecific(`${name}-${version}`);
  const tree = await cached(cacheDir, entry, async (dir) => {
    const work = join(dir, '.download');
    mkdirSync(work);
    await download(program.packages, work);
    await unpackPackages(work, dir);
    rmSync(work, { recursive: true });
    writeCommands(program, dir, join(cacheDir, entry));
  });
  return join(tree, COMMANDS);
}

let newLists: Promise<string> | undefined;

/** With the lists of the system, or else with new ones, which are fetched once for all programs. */
async function download(packages: readonly string[], work: string): Promise<void> {
  try {
    await downloadAll(systemApt(work), packages);
  } catch {
    newLists ??= fetchLists();
    const state = await newLists;
    const own = ['-o', `Dir::State::lists=${state}/lists`, '-o', `Dir::Cache=${state}`];
    await downloadAll(systemApt(work, own), packages);
  }
}

async function fetchLists(): Promise<string> {
  const state = await mkdtemp(join(tmpdir(), 'attest-apt-'));
  process.once('exit', () => rmSync(state, { recursive: true, force: true }));
  await aptWithNewLists(state, state);
  return state;
}

/** What is installed is not counted on: the cache outlives it. */
async function downloadAll(apt: Apt, packages: readonly string[]): Promise<void> {
  const nothing = await mkdtemp(join(tmpdir(), 'attest-apt-'));
  const status = join(nothing, 'status');
  writeFileSync(status, '');
  try {
    const options = ['-o', `Dir::State::status=${status}`, '-s', '--no-install-recommends'];
    const plan = await apt([...options, 'install', ...packages]);
    const found = [...plan.matchAll(/^Inst (\S+) \((\S+) /gm)].map(([, name = '', version]) => ({
      name,
      version,
    }));
    const wanted = found.filter(
      ({ name }) => packages.includes(name) || (BROUGHT.test(name) && !LEFT_OUT.test(name)),
    );
    await apt(['download', ...wanted.map(({ name, version }) => `${name}=${version}`)]);
  } finally {
    await rm(nothing, { recursive: true });
  }
}

/** A script for each command, which sets what it needs. `tree` is where `dir` will be. */
function writeCommands(
  { commands, env = {}, libraries = [], files = {} }: Program,
  dir: string,
  tree: string,
) {
  const folders = [`usr/lib/${MULTIARCH}`, `lib/${MULTIARCH}`];
  const all = [...folders, ...libraries.map((name) => `usr/lib/${MULTIARCH}/${name}`)];
  const path = all.map((folder) => `$tree/${folder}`).join(':');
  const settings = { LD_LIBRARY_PATH: `${path}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}`, ...env };
  const lines = Object.entries(settings).map(([name, value]) => `export ${name}="${value}"`);
  for (const [name, file] of Object.entries(commands)) {
    if (!existsSync(join(dir, file))) throw new Error(`the packages have no ${file}`);
    const script = ['#!/bin/sh', `tree='${tree}'`, ...lines, `exec "$tree/${file}" "$@"`, ''].join('\n');
    write(join(dir, COMMANDS, name), script);
    chmodSync(join(dir, COMMANDS, name), 0o755);
  }
  for (const [name, text] of Object.entries(files)) write(join(dir, name), text.replaceAll('$tree', tree));
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
