import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { filesIn } from './files-in.js';

const ASSET = /\.(?:sql|json|html|css|svg|ico)$/;
/** Where such files are. */
const WITH_ASSETS = ['src', 'gen'] as const;
const COMPILED = /\.(?:js|js\.map|d\.ts)$/;

/**
 * Completes what the compiler wrote to `dist/`: copies the files that programs read beside themselves, and
 * removes what was made of sources that are gone, so that no test and no migration of an earlier build is run.
 */
export function completeBuild(root: string): void {
  for (const path of WITH_ASSETS.flatMap((folder) => filesIn(join(root, folder)))) {
    if (!ASSET.test(path)) continue;
    const target = join(root, 'dist', relative(root, path));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(path, target);
  }
  for (const folder of ['src', 'gen', 'test']) removeStale(join(root, folder), join(root, 'dist', folder));
}

function removeStale(sources: string, built: string): void {
  for (const path of filesIn(built)) {
    const source = join(sources, relative(built, path));
    const isStale = COMPILED.test(path) ? !existsSync(source.replace(COMPILED, '.ts')) : isGone(path, source);
    if (isStale) rmSync(path, { force: true });
  }
}

function isGone(path: string, source: string): boolean {
  return ASSET.test(path) && !existsSync(source);
}
