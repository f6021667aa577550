/** Signed checkpoints from bundles and batches, which an audit compares with the log. */
import type { Client } from '../../../client/client.js';
import { MAX_BUNDLE_CHARACTERS, readBundle } from '../../../proof/verify/read/read-bundle.js';
import { UsageError } from '../../cli.js';
import { readInputFile } from '../../input/input-file.js';

/** A signed note and its source. */
export type SourcedNote = { readonly note: string; readonly from: string };

/** Reads the checkpoints of bundle files. Throws UsageError if a file is not a bundle. */
export async function readBundleNotes(files: readonly string[]): Promise<SourcedNote[]> {
  const notes: SourcedNote[] = [];
  for (const file of files) {
    const { parsed, problems } = readBundle(await readInputFile(file, 'a bundle', MAX_BUNDLE_CHARACTERS));
    if (parsed === undefined) throw new UsageError(`${file} is not a bundle: it ${problems[0]?.message}`);
    for (const { envelope } of parsed.checkpoints) notes.push({ note: envelope, from: `the bundle ${file}` });
  }
  return notes;
}

/** Lists the checkpoints of all batches with a submission of the project. */
export async function listBatchNotes({ batches }: Client): Promise<SourcedNote[]> {
  const notes: SourcedNote[] = [];
  for await (const { id, checkpoint } of batches.list({ limit: 200 })) {
    notes.push({ note: checkpoint, from: `batch ${id}` });
  }
  return notes;
}
