/** Reports read to metadata, for tests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { readReport } from '../../../../src/cli/results/junit/read-report.js';
import { openTally } from '../../../../src/cli/results/junit/tally.js';
import { makeTestResult, type RunDetails } from '../../../../src/cli/results/junit/test-result.js';

/** The folder of reports that tools wrote; its README says how. */
export const SAMPLES = 'test/cli/results/recorded';

/** The metadata made of these reports together. */
export async function resultOf(
  files: readonly string[],
  details: RunDetails = { configuration: [] },
): Promise<JsonObject> {
  const tally = openTally();
  const options = { onBytes: () => {}, signal: new AbortController().signal };
  for (const file of files) await readReport(file, tally, options);
  return makeTestResult(tally, details);
}

/** The metadata made of a report with this content. */
export async function resultOfText(t: Test, content: string | Uint8Array): Promise<JsonObject> {
  const file = join(t.testdir(), 'report.xml');
  writeFileSync(file, content);
  return resultOf([file]);
}
