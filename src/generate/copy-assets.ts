/** The last part of `npm run build`: copies the files that programs read at run time. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { completeBuild } from './assets.js';
import { buildDescriptors } from './protos/buf.js';
import { writeThirdPartyProtos } from './protos/third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
completeBuild(root);
writeThirdPartyProtos(root);
const problem = buildDescriptors(root, join(root, 'dist/gen/openapi/descriptor.binpb'));
if (problem !== undefined) {
  console.error(problem);
  process.exitCode = 1;
}
