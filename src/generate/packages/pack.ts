/** The last part of `npm run pack`: makes the packages, and the script that installs one of them, in `dist/packages/`. */
import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeInstallScript } from './install-script.js';
import { stageCli } from './stage-cli.js';
import { stageClient } from './stage-client.js';
import { stageServer } from './stage-server.js';
import { makeTarball } from './tarball.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const out = join(root, 'dist/packages');

rmSync(out, { recursive: true, force: true });
for (const stage of [stageServer, stageClient, stageCli]) {
  const { path, size } = await makeTarball(stage, { root, out });
  console.log(`${relative(root, path)}  ${Math.round(size / 1000)} kB`);
  if (stage === stageCli) console.log(relative(root, writeInstallScript({ root, out }, path)));
}
