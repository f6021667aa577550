/** The submissions that a build has, from runs before this one. */
import type { JsonObject } from '@bufbuild/protobuf';
import { StatementForm, type Submission } from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import { AttestationError } from '../../client/error.js';
import { jcs } from '../../proof/bytes/jcs.js';
import type { Build } from './build.js';

/**
 * Takes the build's next submission of a digest with this metadata in a statement of this form, if there is one, in the order in which they were made:
 * files that are alike but for their paths have one each.
 */
export type Earlier = (sha256: string, metadata: JsonObject, isPublic?: boolean) => Submission | undefined;

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
        const { artifact, metadata = {}, statement } = submission;
        const key = keyOf(artifact?.sha256 ?? '', metadata, statement === StatementForm.PUBLIC);
        const alike = found.get(key);
        if (alike === undefined) found.set(key, [submission]);
        else alike.push(submission);
      }
    }
  } catch (error) {
    if (!(error instanceof AttestationError) || error.code !== 'auth.insufficient_scope') throw error;
  }
  return (sha256, metadata, isPublic = false) => found.get(keyOf(sha256, metadata, isPublic))?.pop();
}

function keyOf(sha256: string, metadata: JsonObject, isPublic: boolean): string {
  return `${sha256} ${isPublic} ${jcs(metadata)}`;
}
