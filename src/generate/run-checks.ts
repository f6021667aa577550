import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Finding } from './finding.js';

/** A check, with a name that says what holds when it passes. `scratch` is an empty folder of its own. */
export type Check = { name: string; run: (scratch: string) => Finding };

/**
 * Runs every check, whatever came of those before it, and prints a line for each, followed by what is wrong. Returns
 * whether all passed.
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
