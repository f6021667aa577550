import { join } from 'node:path';
import { buf, TEMPLATES } from './buf.js';
import { compareFolders } from './compare-folders.js';
import type { Finding } from './finding.js';

/**
 * Generates all code into `scratch`, an empty folder, and compares it byte by byte with what is committed. Needs the
 * third-party protos at `root`, and changes nothing there.
 */
export function checkGenerated({ root, scratch }: { root: string; scratch: string }): Finding {
  const problems = TEMPLATES.flatMap(({ template, folder }) => {
    const failure = buf(root, 'generate', '--template', template, '-o', scratch);
    if (failure !== undefined) return [failure];
    const differences = compareFolders({ expected: join(scratch, folder), actual: join(root, folder) });
    return differences.map((difference) => `${folder}/${difference}`);
  });
  if (problems.length === 0) return {};
  return { problem: [...problems, 'run "npm run generate" and commit what it writes'].join('\n') };
}
