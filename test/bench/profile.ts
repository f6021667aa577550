import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A processor profile as V8 writes it. */
type CpuProfile = {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
};

const TOP = 25;
const IDLE = '(idle)';

/** The newest profile of a main thread in a folder: threads have numbers, and the main thread's is 0. */
export async function findProfile(dir: string): Promise<string> {
  const names = (await readdir(dir)).filter((name) => /\.0\.\d+\.cpuprofile$/.test(name)).sort();
  return join(dir, names.at(-1) ?? '');
}

/** Prints the functions that took most of the time themselves, as shares of the time the process was busy. */
export async function printProfile(name: string, path: string): Promise<void> {
  const self = selfTimes(JSON.parse(await readFile(path, 'utf8')) as CpuProfile);
  const busy = [...self.values()].reduce((sum, micros) => sum + micros, 0);
  console.log(`\n${name}: ${path}`);
  for (const [place, micros] of [...self].sort((a, b) => b[1] - a[1]).slice(0, TOP)) {
    console.log(`${((micros / busy) * 100).toFixed(1).padStart(6)} %  ${place}`);
  }
}

/** Microseconds spent in each function itself, by its name and place, save idle time. */
function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): Map<string, number> {
  const places = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const self = new Map<string, number>();
  samples.forEach((id, i) => {
    const place = places.get(id) ?? '';
    // A sample's own time ends where the next one begins.
    if (place !== IDLE) self.set(place, (self.get(place) ?? 0) + (timeDeltas[i + 1] ?? 0));
  });
  return self;
}

function placeOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  const short = url.replace(/^file:\/\/.*\/(dist|node_modules)\//, '$1/');
  return `${name}  ${short}:${lineNumber + 1}`;
}
