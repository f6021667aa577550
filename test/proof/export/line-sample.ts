/** Lines of exports, what they are changed into, and their verifier. */
import { createLineVerifier, type LineOptions } from '../../../src/proof/export/verify-line.js';
import { NOW } from '../sample.js';
import { service, trustRoots } from '../verifying.js';
import { type Line, makeBatches } from './export-sample.js';

export const OTHER_PROJECT = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0';
export const INVALID = { schema: 'purl', purl: 'not a purl' };
export const CORRECTED = { schema: 'intoto.test_result.v0.1', result: 'PASSED' };

export const [batch, second, foreign, deep] = await makeBatches(service, [
  { own: 3, others: 2 },
  { own: 1 },
  { own: 1, project: OTHER_PROJECT, metadata: INVALID },
  { own: 1, metadata: { schema: 'purl', list: [[[[[[[[[[[[[[[[[[[[[[[[[['x']]]]]]]]]]]]]]]]]]]]]]]]]] } },
]);

/** A line that verifies. */
export const good = batch!.lines[0]!;

/** A verifier of lines under the sample's trust roots. */
export function verifier(options: Partial<LineOptions> = {}) {
  return createLineVerifier({ trustRoots, now: NOW, ...options });
}

/** The line with a change made to it, as text. */
export function changed(change: (line: Line) => unknown, line = good): string {
  const copy = structuredClone(line);
  change(copy);
  return JSON.stringify(copy);
}
