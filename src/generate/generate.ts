/** The first part of `npm run generate`: everything that is made from the protos, and the compiled contract. */
import { fileURLToPath } from 'node:url';
import { writeContracts } from './contracts/contracts.js';
import { generateCode } from './protos/buf.js';
import { writeThirdPartyProtos } from './protos/third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
writeThirdPartyProtos(root);
const problem = generateCode(root, root);
if (problem === undefined) {
  writeContracts(root, root);
} else {
  console.error(problem);
  process.exitCode = 1;
}
