import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Finding } from './finding.js';

/** A check; its name states what it proves. `scratch` is an empty folder of its own. */
export type Check = { name: string; run: (scratch: string) => Finding };

/**
 * Runs every check, also after a failed one. Prints a line for each, followed by its problems. Returns whether all
 * passed.
 */
export function runChecks(checks: readonly Check[], print: (text: string) => void): boolean {
  const results = checks.map(({ name, run }) => {
    const { problem, note } = inScratch(run);
    const remark = note === undefined ? '' : ` (${note})`;
    print(`${problem === undefined ? 'ok     ' : 'FAILED '}${name}${remark}`);
    if (problem !== undefined) print(problem.replaceAll(/^/gm, '       '));
    return problem === undefined;
  });
  return results.every((passed) => passed);
}

function inScratch(run: Check['run']): Finding {
  const scratch = mkdtempSync(join(tmpdir(), 'attest-check-'));
  try {
    return run(scratch);
  } catch (error) {
    return { problem: String(error) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
