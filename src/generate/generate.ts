/** The first part of `npm run generate`: everything that is made from the protos. */
import { fileURLToPath } from 'node:url';
import { generateCode } from './buf.js';
import { writeThirdPartyProtos } from './third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
writeThirdPartyProtos(root);
const problem = generateCode(root, root);
if (problem !== undefined) {
  console.error(problem);
  process.exitCode = 1;
}
