/** A parsed bundle: well-formed and consistent in itself, but not verified. */
import type {
  BundleBatch,
  BundleSubmission,
  BundleWitness,
} from '../../../../gen/attestation/v1/bundle_pb.js';
import type { SignedCheckpoint } from '../../log/checkpoint.js';

/** Parts of a bundle. The first checkpoint is the batch's; all are of one log. */
export type ParsedBundle = SignedEntry & {
  readonly submission: BundleSubmission;
  readonly batch: BundleBatch;
  readonly checkpoints: readonly ParsedCheckpoint[];
  readonly witnesses: readonly BundleWitness[];
  /** The member proof in `set_proof`, as parsed JSON, if the bundle has one. */
  readonly setProof?: unknown;
  /** JSON pointers to members that this version does not know. Nothing is claimed from them. */
  readonly ignored: readonly string[];
};

/**
 * A checkpoint, its signed note (`envelope`), and the leaf's inclusion proof. `hasExtensions`: whether lines that this
 * version does not know follow the root.
 */
export type ParsedCheckpoint = SignedCheckpoint & {
  readonly envelope: string;
  readonly hasExtensions: boolean;
  readonly inclusionProof: readonly Uint8Array[];
};

/** A TimeStampResp over the DSSE signature, and its JSON pointer. */
export type SignatureStamp = { readonly path: string; readonly response: Uint8Array };

/**
 * The signed statement and its log entry: what the Sigstore bundle inside adds to the other members. Of an erased statement the
 * payload is empty, and the signature is that of the log entry.
 */
export type SignedEntry = {
  readonly isErased: boolean;
  readonly envelope: {
    readonly payload: Uint8Array;
    readonly payloadType: string;
    readonly signature: Uint8Array;
    readonly keyHint: string;
    readonly stamps: readonly SignatureStamp[];
  };
  readonly entry: { readonly logIndex: number; readonly logId: Uint8Array; readonly body: Uint8Array };
};
