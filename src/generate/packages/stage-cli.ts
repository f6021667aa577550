import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'esbuild';
import { LICENSES } from '../bundle/licenses.js';
import { bundleProgram, bundleThread } from '../bundle/program.js';
import { cliManifest, HASH_THREAD, readRootManifest } from './manifest.js';
import { copyFile, writeFile, writeJson } from './write.js';

/** What runs the server, of which nothing is in the bundle. */
const SERVER = /\/node_modules\/(?:fastify|nats|postgres)\//;

/**
 * Writes what the package `@attestation-service/cli` holds to the folder `out`: the program without the commands of the server, and
 * the verify page that it writes. Needs a build. Throws if a command brings the server with it.
 */
export async function stageCli({ root, out }: { root: string; out: string }): Promise<void> {
  await bundleProgram(root, {
    out: join(out, 'dist/attest'),
    plugins: [withoutServer()],
    // A third less; names stay, for stack traces.
    minifySyntax: true,
    minifyWhitespace: true,
  });
  writeFile(join(out, HASH_THREAD), bundleThread(join(root, HASH_THREAD)));
  for (const path of ['dist/web/verify', join('dist/web', LICENSES)]) {
    cpSync(join(root, path), join(out, path), { recursive: true });
  }
  writeJson(join(out, 'package.json'), cliManifest(readRootManifest(root)));
  copyFile(join(root, 'src/cli/README.md'), join(out, 'README.md'));
  copyFile(join(root, 'LICENSE'), join(out, 'LICENSE'));
}

/** Takes the commands of the server out of the program. */
function withoutServer(): Plugin {
  return {
    name: 'without-server',
    setup({ onLoad }) {
      onLoad({ filter: /\/dist\/src\/cli\/server-commands\.js$/ }, () => ({
        contents: 'export const SERVER_COMMANDS = new Map();',
      }));
      onLoad({ filter: SERVER }, ({ path }) => ({ errors: [{ text: `a command imports ${path}` }] }));
    },
  };
}
