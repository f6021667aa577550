/** Hashes files and submits them, many in a call. */
import type { Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client, SubmitManyItem } from '../../../client/client.js';
import { hashArtifact } from '../../../client/hash.js';

/** The submission of a file, or why there is none. */
export type FileResult = { file: string } & ({ submission: Submission } | { error: unknown });

/** A file's hash, or why it cannot be read. */
type HashedFile = { file: string } & ({ sha256: string } | { error: unknown });

/** What a call submits of a file. */
export type MakeItem = (file: { file: string; sha256: string }) => SubmitManyItem;

/** `failed` ends the hashing of further files; `stop` also makes no further call, and leaves out what has no result. */
type SubmitOptions = {
  makeItem: MakeItem;
  failed: AbortSignal;
  stop: AbortSignal;
  onResults: (count: number) => void;
};

/** Hashes a file. `onBytes` is called with the size of each chunk that is read. */
export async function hashFile(
  file: string,
  options: { onBytes: (bytes: number) => void; signal: AbortSignal },
): Promise<HashedFile> {
  try {
    return { file, sha256: await hashArtifact(file, options) };
  } catch (error) {
    return { file, error };
  }
}

/** A file that waits for its result; `item` is its place among those that are submitted. */
type Waiting = HashedFile & { item: number };

/** Submits files and yields the results in their order. */
export async function* submitHashed(
  { attestations }: Client,
  hashed: AsyncIterable<HashedFile>,
  { makeItem, failed, stop, onResults }: SubmitOptions,
): AsyncGenerator<FileResult> {
  const waiting: Waiting[] = [];
  let count = 0;
  const items = async function* () {
    for await (const file of hashed) {
      if (failed.aborted || stop.aborted) return;
      const isReadable = 'sha256' in file;
      waiting.push({ ...file, item: isReadable ? count++ : Number.NEGATIVE_INFINITY });
      if (isReadable) yield makeItem(file);
    }
  };
  for await (const { index, submission, error } of attestations.submitMany(items(), { stop, onResults })) {
    yield* takeUntil(waiting, index);
    const { file = '' } = waiting.shift() ?? {};
    yield submission === undefined ? { file, error } : { file, submission };
  }
  yield* takeUntil(waiting, count);
}

/** Takes the files before an item; those that could not be read are results. */
function* takeUntil(waiting: Waiting[], index: number): Generator<FileResult> {
  for (let [first] = waiting; first !== undefined && first.item < index; [first] = waiting) {
    waiting.shift();
    if ('error' in first) yield { file: first.file, error: first.error };
  }
}
