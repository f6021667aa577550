/** Which files of src/ a process has entered, by V8's coverage: those of which it called a function. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'undici';
import { run } from '../process.js';

/** Coverage as V8 reports it, by script. */
type Coverage = {
  result: {
    url: string;
    functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
  }[];
};

/** The coverage of a running process, taken over its inspector. */
export type CoverageSession = {
  /** The files entered since the last call. */
  take: () => Promise<Set<string>>;
  close: () => void;
};

/** Starts coverage in the process whose inspector listens at a port of this machine. */
export async function openCoverage(port: number): Promise<CoverageSession> {
  const list = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
  const socket = new WebSocket((list as { webSocketDebuggerUrl: string }[])[0]?.webSocketDebuggerUrl ?? '');
  const waiting = new Map<number, (result: Coverage) => void>();
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id: number; result: Coverage };
    waiting.get(id)?.(result);
  };
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    socket.onerror = ({ message }) => reject(new Error(message));
  });
  let id = 0;
  const call = (method: string, params = {}) =>
    new Promise<Coverage>((resolve) => {
      waiting.set(++id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
  await call('Profiler.enable');
  await call('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return {
    take: async () => filesEntered(await call('Profiler.takePreciseCoverage')),
    close: () => socket.close(),
  };
}

/** The files that a process entered from its start, and those it entered after it called `takeCoverage` of node:v8. */
export type CoveredRun = { all: Set<string>; onceUp: Set<string> };

/** Runs a Node script to its end, which calls `takeCoverage` once, and returns the files that it entered. */
export async function runCovered(args: readonly string[]): Promise<CoveredRun> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-coverage-'));
  try {
    await run(process.execPath, args, { NODE_V8_COVERAGE: dir });
    const names = await readdir(dir);
    // coverage-<process>-<time>-<number of the report>.json
    const numbered = names.map((name) => ({ name, number: Number(/-(\d+)\.json$/.exec(name)?.[1]) }));
    const reports = await Promise.all(
      numbered
        .sort((a, b) => a.number - b.number)
        .map(async ({ name }) => filesEntered(JSON.parse(await readFile(join(dir, name), 'utf8')))),
    );
    return { all: new Set(reports.flatMap((files) => [...files])), onceUp: reports.at(-1) ?? new Set() };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** A module's own top level, which runs when it is loaded, does not count. */
function filesEntered({ result }: Coverage): Set<string> {
  const files = new Set<string>();
  for (const { url, functions } of result) {
    const file = /\/dist\/(src\/.*)\.js$/.exec(url)?.[1];
    const isEntered = functions.some(
      ({ functionName, ranges: [range] }) =>
        (range?.count ?? 0) > 0 && !(functionName === '' && range?.startOffset === 0),
    );
    if (file !== undefined && isEntered) files.add(`${file}.ts`);
  }
  return files;
}
