/** What a bundle says, once it is known to be well-formed and to agree with itself. Nothing in it is proven yet. */
import type { BundleBatch, BundleSubmission, BundleWitness } from '../../../gen/attestation/v1/bundle_pb.js';
import type { SignedCheckpoint } from '../log/checkpoint.js';

/** A bundle's parts. The first checkpoint is the batch's; all are of one log. */
export type ParsedBundle = SignedEntry & {
  readonly submission: BundleSubmission;
  readonly batch: BundleBatch;
  readonly checkpoints: readonly ParsedCheckpoint[];
  readonly witnesses: readonly BundleWitness[];
};

/** A checkpoint, the signed note it stands in, and the leaf's inclusion in it. */
export type ParsedCheckpoint = SignedCheckpoint & {
  readonly envelope: string;
  readonly inclusionProof: readonly Uint8Array[];
};

/** What of a Sigstore bundle does not follow from the rest. */
export type SignedEntry = {
  readonly envelope: {
    readonly payload: Uint8Array;
    readonly signature: Uint8Array;
    readonly keyHint: string;
  };
  readonly entry: { readonly logIndex: number; readonly logId: Uint8Array; readonly body: Uint8Array };
};
