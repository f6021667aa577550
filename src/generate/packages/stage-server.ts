import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { filesIn } from '../files-in.js';
import { readRootManifest, serverManifest } from './manifest.js';
import { copyFile, writeFile, writeJson } from './write.js';

/** Of the build: no declarations, no source maps (the sources are not there), no programs of the build itself. */
const LEFT_OUT = /\.(?:d\.ts|map)$|^dist\/src\/generate\//;

const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs', 'proto'] as const;

/**
 * Writes what the package `attestation-service` holds to the folder `out`: the compiled server and CLI, the documents,
 * the protos, and the bundled dependencies as they are installed here, which is patched. Needs a build.
 */
export function stageServer({ root, out }: { root: string; out: string }): void {
  const manifest = readRootManifest(root);
  for (const file of ['dist/src', 'dist/gen', 'dist/web'].flatMap((folder) => filesIn(join(root, folder)))) {
    const path = relative(root, file);
    if (LEFT_OUT.test(path)) continue;
    if (path.endsWith('.js')) writeFile(join(out, path), readFileSync(file, 'utf8'));
    else copyFile(file, join(out, path));
  }
  for (const name of DOCUMENTS) {
    if (existsSync(join(root, name))) cpSync(join(root, name), join(out, name), { recursive: true });
  }
  for (const name of manifest.bundleDependencies) {
    const folder = join('node_modules', name);
    cpSync(join(root, folder), join(out, folder), { recursive: true });
  }
  writeJson(join(out, 'package.json'), serverManifest(manifest));
}
