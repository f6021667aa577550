/** Which submissions' bundles are fetched. */
import type { Client } from '../../client/client.js';
import { type Cli, UsageError } from '../cli.js';
import { assertSubmissionId, isSubmissionId, NO_SUBMISSION_ID } from '../input/submission-id.js';
import { readLinesOf, wrongLine } from '../submit/lines.js';

/** Where the ids come from, beside the arguments. */
export type IdFlags = { readonly build?: string; readonly idsFrom?: string };

const PAGE = 200;

/**
 * The ids given as arguments, in a file and by a build, each once, in this order. Throws UsageError of text that is no id,
 * and what listing throws.
 */
export async function gatherIds(
  cli: Cli,
  given: readonly string[],
  { build, idsFrom }: IdFlags,
  { client, signal }: { client: Client; signal: AbortSignal },
): Promise<string[]> {
  given.forEach(assertSubmissionId);
  const ids = new Set(given);
  if (idsFrom !== undefined) {
    for (const { text, number } of await readLinesOf(cli, idsFrom, { flag: '--ids-from', end: 'newline' })) {
      const id = text.trim();
      if (id !== '' && !isSubmissionId(id)) throw wrongLine(idsFrom, number, NO_SUBMISSION_ID);
      if (id !== '') ids.add(id);
    }
  }
  if (build !== undefined) {
    for await (const { id } of client.attestations.list({ build, limit: PAGE }, { signal })) ids.add(id);
    if (ids.size === 0) throw new Error(`the project has no submissions of the build ${build}`);
  }
  if (ids.size === 0) throw new UsageError(`${idsFrom} has no submission IDs`);
  return [...ids];
}
