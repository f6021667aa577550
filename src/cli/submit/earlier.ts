/** The submissions that a build has, from runs before this one. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Submission } from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import { AttestationError } from '../../client/error.js';
import { jcs } from '../../proof/bytes/jcs.js';
import type { Build } from './build.js';

/**
 * Takes the build's next submission of a digest with this metadata, if there is one, in the order in which they were made:
 * files that are alike but for their paths have one each.
 */
export type Earlier = (sha256: string, metadata: JsonObject) => Submission | undefined;

const PAGE = 200;

/**
 * Lists what a build that was named has: with a digest, of that alone. A key that may not read finds nothing, and repeats by
 * idempotency keys only. Throws what the list throws, and the signal's reason.
 */
export async function findEarlier(
  { attestations }: Client,
  { id, isGiven }: Build,
  { artifactSha256 = '', signal }: { artifactSha256?: string; signal: AbortSignal },
): Promise<Earlier> {
  const found = new Map<string, Submission[]>();
  try {
    const request = { build: id, artifactSha256, limit: PAGE };
    // Newest first: the first one made is the last one of them.
    if (isGiven) {
      for await (const submission of attestations.list(request, { signal })) {
        const key = keyOf(submission.artifact?.sha256 ?? '', submission.metadata ?? {});
        const alike = found.get(key);
        if (alike === undefined) found.set(key, [submission]);
        else alike.push(submission);
      }
    }
  } catch (error) {
    if (!(error instanceof AttestationError) || error.code !== 'auth.insufficient_scope') throw error;
  }
  return (sha256, metadata) => found.get(keyOf(sha256, metadata))?.pop();
}

function keyOf(sha256: string, metadata: JsonObject): string {
  return `${sha256} ${jcs(metadata)}`;
}
