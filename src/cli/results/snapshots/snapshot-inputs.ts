/** `attest submit --snapshots`: each snapshot of a folder as a submission. */
import { stat } from 'node:fs/promises';
import type { Input } from '../../submit/inputs.js';
import { recordedName } from '../../submit/recorded-name.js';
import { withGiven } from '../results-flags.js';
import { readSnapshots } from './read-snapshots.js';

/** The inputs, with their metadata. Throws as readSnapshots does. */
export async function snapshotInputs(folder: string, { report }: { report?: string }): Promise<Input[]> {
  const inputs: Input[] = [];
  for (const { file, metadataOf } of await readSnapshots(folder, report)) {
    const { size: bytes } = await stat(file);
    const name = recordedName(file, process.cwd());
    inputs.push({
      label: file,
      name,
      bytes,
      describe: (sha256, given) => withGiven(metadataOf(sha256), given),
    });
  }
  return inputs;
}
