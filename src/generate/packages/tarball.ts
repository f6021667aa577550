import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findOutput } from '../checks/finding.js';

/** A tarball that was made: its path, and its size in bytes. */
type Tarball = { path: string; size: number };

/** Writes the files of a package to the folder `out`, from the checkout and its build at `root`. */
type Stage = (folders: { root: string; out: string }) => void | Promise<void>;

/** Makes a package's tarball in the folder `out`. Throws if `npm pack` fails. */
export async function makeTarball(
  stage: Stage,
  { root, out }: { root: string; out: string },
): Promise<Tarball> {
  mkdirSync(out, { recursive: true });
  const dir = mkdtempSync(join(out, '.stage-'));
  try {
    await stage({ root, out: dir });
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', out];
    const printed = findOutput(dir, 'npm', args);
    if (printed === undefined) throw new Error(`npm pack failed in ${dir}`);
    const [{ filename, size }] = JSON.parse(printed) as [{ filename: string; size: number }];
    return { path: join(out, filename), size };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
