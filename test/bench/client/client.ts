import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { type ShutdownHooks, withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { findFreePort } from '../../support/servers/free-port.js';
import type { Options } from '../options.js';
import { benchScript, run } from '../process.js';
import { readyUrl, type Services, startRole } from '../services.js';
import { attest, type Command, type Cost, costOf, leastCost, leastOf } from './cost.js';
import { makeFiles, writeLog, writeReport } from './inputs.js';
import { addedCounts, type RequestCounts, readRequestCounts } from './request-counts.js';

/** What a command took at least; `requests` are those that the service had from it once, by RPC. */
export type ClientRow = Cost & { name: string; requests?: RequestCounts; aim?: string };

/** How the speed of a set compares with a program: above 1 it is quicker, or takes less processor time. */
type Comparison = { name: string; clock: number; cpu: number };

/** Commands of attest, each in a process of its own, and how making a set compares with sha256sum. */
export type ClientMeasurement = { rows: ClientRow[]; compared: Comparison[] };

/** Where commands run, and how often. */
type Scene = {
  dir: string;
  env: Record<string, string>;
  files: number;
  rounds: number;
  readCounts: () => Promise<RequestCounts>;
};

/** What a file costs by itself, and what its content does: a set is held against sha256sum with files of both sizes. */
const FILE_KIB = [1, 16];
const ENTRIES_A_FILE = 10;
const MAX_ENTRIES = 1_000_000;
const MAX_EACH = 1_000;
const MAX_BUNDLES = 5_000;
const MAX_CASES = 100_000;
/** Processor time is counted in 10 ms: of commands that take a tenth of a second the mean of some. */
const SHORT_RUNS = 10;

/** Runs commands of attest against an api and a worker process, on files, reports and logs made for them. */
export async function measureClient(services: Services, options: Options): Promise<ClientMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const scene = await openScene(services, options, hooks);
    const sets: ClientMeasurement[] = [];
    for (const kib of FILE_KIB) sets.push(await measureSet(scene, kib));
    const rows = sets.flatMap((set) => set.rows);
    for (const measure of [measureEntries, measureSmallSet, measureEach, measureVerify, measureResults])
      rows.push(...(await measure(scene)));
    return { rows, compared: sets.flatMap(({ compared }) => compared) };
  });
}

async function openScene(services: Services, options: Options, hooks: ShutdownHooks): Promise<Scene> {
  const dir = join(services.dir, 'client');
  mkdirSync(dir);
  hooks.add(async () => rmSync(dir, { recursive: true }));
  hooks.add((await startRole(services, 'worker')).stop);
  const opsPort = await findFreePort();
  const env = { ...services.env, OPS_PORT: String(opsPort), OPS_HOST: '127.0.0.1' };
  const api = await startRole({ env }, 'api');
  hooks.add(api.stop);
  const url = readyUrl(api);
  const trustRoots = await (await fetch(`${url}/verify/trust_roots.json`)).text();
  writeFileSync(join(dir, 'trust_roots.json'), trustRoots);
  return {
    dir,
    env: { HOME: dir, ATTEST_URL: url, ATTEST_API_KEY: services.apiKey },
    files: options.files,
    rounds: options.rounds,
    readCounts: () => readRequestCounts(opsPort),
  };
}

/** A line of the command line, in the folder of the scene. */
function lineOf({ dir, env }: Scene, ...line: string[]): Command {
  return attest(line, { cwd: dir, env });
}

/** A set of all files, in turns with sha256sum over the same files: one process, and one for each core. */
async function measureSet(scene: Scene, kib: number): Promise<ClientMeasurement> {
  const { dir, files, rounds } = scene;
  makeFiles(join(dir, 'art'), files, kib);
  await run('sync', []);
  const cores = cpus().length;
  const sums = (processes: number): Command => ({
    file: 'sh',
    args: ['-c', `find art -type f -print0 | xargs -0 -P ${processes} sha256sum > SUMS`],
    cwd: dir,
  });
  const contenders = [
    { name: 'one sha256sum', command: sums(1) },
    { name: `${cores} sha256sum side by side`, command: sums(cores) },
    { name: 'submit art/', command: lineOf(scene, 'submit', 'art', '--set', 'art.set.json', '--force') },
  ];
  const costs = contenders.map((): Cost[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [i, { command }] of contenders.entries()) costs[i]?.push(await costOf(command));
  const least = costs.map(leastOf);
  // The peak of a shell is not that of what it runs.
  const rows = contenders.map(({ name }, i): ClientRow => {
    const { cpuSeconds, seconds, peakMib } = least[i] as Cost;
    const isSet = i === contenders.length - 1;
    return {
      name: `${name}, ${files} files of ${kib} KiB`,
      cpuSeconds,
      seconds,
      peakMib: isSet ? peakMib : undefined,
      ...(isSet && { aim: '0.8 of sha256sum' }),
    };
  });
  const [one, sideBySide, set] = least as [Cost, Cost, Cost];
  const compared = [one, sideBySide].map((sum, i) => ({
    name: `${contenders[i]?.name}, files of ${kib} KiB,`,
    clock: sum.seconds / set.seconds,
    cpu: sum.cpuSeconds / set.cpuSeconds,
  }));
  rmSync(join(dir, 'art'), { recursive: true });
  return { rows, compared };
}

/** A set of many entries by the library: written, read, and a member proof. */
async function measureEntries({ dir, files, rounds }: Scene): Promise<ClientRow[]> {
  const entries = Math.min(MAX_ENTRIES, ENTRIES_A_FILE * files);
  const rows: ClientRow[] = [];
  for (const [task, what] of [
    ['write', 'write a set'],
    ['read', 'read it'],
    ['prove', 'prove a member of it'],
  ] as const) {
    const args = [benchScript('client/set-process'), task, join(dir, 'many.set.json'), String(entries)];
    const cost = await leastCost({ file: process.execPath, args }, rounds);
    rows.push({ name: `library: ${what}, ${entries} entries`, ...cost, aim: '300 MiB' });
  }
  return rows;
}

async function measureSmallSet(scene: Scene): Promise<ClientRow[]> {
  const count = Math.min(MAX_EACH, scene.files);
  makeFiles(join(scene.dir, 'small'), count);
  const command = lineOf(scene, 'submit', 'small', '--force');
  const requests = await requestsOf(scene, command);
  const cost = await leastCost(command, scene.rounds);
  return [{ name: `submit small/, ${count} files`, ...cost, requests, aim: '1 create' }];
}

async function measureEach(scene: Scene): Promise<ClientRow[]> {
  const count = Math.min(MAX_EACH, scene.files);
  const command = lineOf(
    scene,
    'submit',
    'small',
    '--each',
    '--wait',
    '--bundles',
    'small-proofs',
    '--force',
  );
  const requests = await requestsOf(scene, command);
  const cost = await leastCost(command, scene.rounds);
  return [{ name: `submit small/ --each --wait --bundles, ${count} files`, ...cost, requests }];
}

async function requestsOf({ readCounts }: Scene, command: Command): Promise<RequestCounts> {
  const before = await readCounts();
  await costOf(command);
  return addedCounts(before, await readCounts());
}

async function measureVerify(scene: Scene): Promise<ClientRow[]> {
  const { dir, files, rounds } = scene;
  const count = Math.min(MAX_BUNDLES, files);
  makeFiles(join(dir, 'each'), count);
  await costOf(lineOf(scene, 'submit', 'each', '--each', '--wait', '--bundles', 'proofs', '--quiet'));
  const file = 'each/0000/sample-0.json';
  const trusted = ['--trust-roots', 'trust_roots.json'];
  const many = lineOf(scene, 'verify', 'each', '--bundles', 'proofs', ...trusted);
  const one = lineOf(scene, 'verify', file, '--bundle', `proofs/${file}.bundle.json`, ...trusted);
  return [
    {
      name: `verify each/ --bundles, ${count} bundles`,
      ...(await leastCost(many, rounds)),
      aim: '3 s of CPU',
    },
    { name: 'verify FILE --bundle', ...(await leastCost(one, rounds, SHORT_RUNS)), aim: '0.15 s of CPU' },
    ...(await measureShort(scene)),
  ];
}

async function measureShort(scene: Scene): Promise<ClientRow[]> {
  const { rounds } = scene;
  const version = await leastCost(lineOf(scene, '--version'), rounds, SHORT_RUNS);
  const help = await leastCost(lineOf(scene, '--help'), rounds, SHORT_RUNS);
  return [
    { name: '--version', ...version, aim: '0.1 s of CPU' },
    { name: '--help', ...help, aim: '0.12 s of CPU' },
  ];
}

/** A report of tests and the log of an evaluation. */
async function measureResults(scene: Scene): Promise<ClientRow[]> {
  const { dir, files, rounds } = scene;
  const count = Math.min(MAX_CASES, files);
  writeReport(join(dir, 'report.xml'), count);
  const report = await leastCost(lineOf(scene, 'submit', '--junit', 'report.xml'), rounds);
  writeLog(join(dir, 'log.eval'), count);
  const evaluate = lineOf(scene, 'submit', '--eval', 'log.eval', '--set', 'log.set.json', '--force');
  return [
    { name: `submit --junit, ${count} cases of 2 KB`, ...report, aim: '150 MiB' },
    { name: `submit --eval, ${count} samples of 1 KB`, ...(await leastCost(evaluate, rounds)) },
  ];
}
