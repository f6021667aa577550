import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { bundleThread } from '../bundle/program.js';
import { filesIn } from '../files-in.js';
import { HASH_THREAD, readRootManifest, serverManifest } from './manifest.js';
import { copyFile, writeFile, writeJson } from './write.js';

/** The program, its pages, and what it reads or starts as a thread in the folders of its modules. */
const PARTS = ['dist/attest', 'dist/web', 'dist/src', 'dist/gen'] as const;
const BUNDLED = /^dist\/(?:src|gen)\/.*\.(?:js|d\.ts|map)$/;
const THREADS = ['dist/src/server/attestations/signing/signing-thread.js', HASH_THREAD];

const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs', 'proto'] as const;

/**
 * Writes what the package `attestation-service` holds to the folder `out`: the bundled program, the pages, the documents
 * and the protos. Needs a build.
 */
export function stageServer({ root, out }: { root: string; out: string }): void {
  for (const file of PARTS.flatMap((folder) => filesIn(join(root, folder)))) {
    const path = relative(root, file);
    if (THREADS.includes(path)) writeFile(join(out, path), bundleThread(file));
    else if (BUNDLED.test(path)) continue;
    else if (path.endsWith('.js')) writeFile(join(out, path), readFileSync(file, 'utf8'));
    else copyFile(file, join(out, path));
  }
  for (const name of DOCUMENTS) {
    if (existsSync(join(root, name))) cpSync(join(root, name), join(out, name), { recursive: true });
  }
  writeJson(join(out, 'package.json'), serverManifest(readRootManifest(root)));
}
