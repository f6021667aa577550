import { join } from 'node:path';
import { writeContracts } from '../contracts/contracts.js';
import { GENERATED, generateCode } from '../protos/buf.js';
import { compareFolders } from './compare-folders.js';
import { type Finding, findProblem } from './finding.js';

/**
 * Generates all code and the dump of the schema into `scratch`, an empty folder, and compares it byte by byte with what is
 * committed. Needs the third-party protos at `root`, and changes nothing there.
 */
export function checkGenerated({ root, scratch }: { root: string; scratch: string }): Finding {
  const failure =
    generateCode(root, scratch) ??
    findProblem(root, 'node', ['--import', 'tsx', 'src/generate/write-schema.ts', scratch]);
  if (failure !== undefined) return { problem: failure };
  writeContracts(root, scratch);
  const problems = GENERATED.flatMap((folder) => {
    const differences = compareFolders({ expected: join(scratch, folder), actual: join(root, folder) });
    return differences.map((difference) => `${folder}/${difference}`);
  });
  if (problems.length === 0) return {};
  return { problem: [...problems, 'run "npm run generate" and commit what it writes'].join('\n') };
}
