/** The first part of `npm run generate`: everything that is made from the protos. */
import { fileURLToPath } from 'node:url';
import { buf, TEMPLATES } from './buf.js';
import { writeThirdPartyProtos } from './third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
writeThirdPartyProtos(root);
for (const { template } of TEMPLATES) {
  const problem = buf(root, 'generate', '--template', template);
  if (problem === undefined) continue;
  console.error(problem);
  process.exitCode = 1;
}
