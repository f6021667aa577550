/** A submission's proof bundle: one message with everything for offline verification. */

import { create, type JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type BundleBatch,
  BundleBatchSchema,
  type BundleWitness,
  BundleWitnessSchema,
  type ProofBundle,
  ProofBundleSchema,
  WitnessKind,
} from '../../../gen/attestation/v1/bundle_pb.js';
import { environmentNumber } from '../../protocol/environment.js';
import { fromUtf8, toHex, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { parseCheckpoint } from '../log/checkpoint.js';
import { leafHash } from '../log/merkle.js';
import { appendSignatures, noteKeyHash, parseSignatureLines } from '../log/note.js';
import { dsseKeyHint } from '../statement/dsse.js';
import { leafRecord, rebuildLeaf } from '../statement/leaf.js';
import type { StatedSubmission } from '../statement/stated-submission.js';
import { sigstoreBundle, sigstoreEntry } from './sigstore-bundle.js';

export const BUNDLE_MEDIA_TYPE = 'application/vnd.attestation-service.bundle.v1+json';

/** The name of the log itself among a batch's witnesses, and in policies, where its origin does as well. */
export const LOG_WITNESS_NAME = 'log';

/** The parts of a batch's bundles besides their leaves. */
type BatchParts = {
  readonly batch: { readonly id: string; readonly firstIndex: number };
  /** The log's raw Ed25519 key. */
  readonly logKey: Uint8Array;
  /** The batch's checkpoint first, then later ones in order of size; each a signed note. */
  readonly notes: readonly string[];
  readonly witnesses: readonly WitnessParts[];
};

/** The shared parts of a batch's bundles; cosignatures are joined to their notes. */
export type PreparedBatch = {
  readonly batch: BundleBatch;
  readonly rootHash: Uint8Array;
  readonly logId: Uint8Array;
  readonly checkpoints: readonly { readonly size: number; readonly note: string }[];
  readonly witnesses: readonly BundleWitness[];
};

/** What a bundle says of its submission in so many words. */
export type BundledSubmission = Pick<
  StatedSubmission,
  'submissionId' | 'environment' | 'submittedAt' | 'artifactSha256'
>;

/** What is left of an erased statement: SHA-256 of what was signed (PAE), and when it was erased, as `submittedAt` is given. */
export type ErasedStatement = { readonly digest: Uint8Array; readonly erasedAt: string };

/** One leaf of a batch. */
export type LeafParts = {
  readonly submission: BundledSubmission;
  /** The text of the signed statement. */
  readonly statement: string | ErasedStatement;
  /** The stored DSSE signature, DER. */
  readonly signature: Uint8Array;
  /** The DSSE key that made it, SPKI in DER. */
  readonly dsseKey: Uint8Array;
  readonly logIndex: number;
  /** The leaf's inclusion in each of the batch's checkpoints, in their order. */
  readonly inclusionProofs: readonly (readonly Uint8Array[])[];
} & SignatureStamps;

/** The time stamps over the signature of a leaf; without members if none is made. */
export type SignatureStamps = {
  /** Each a TimeStampResp (DER) in base64. */
  readonly stamps?: readonly string[];
  /** Whether an authority has yet to make one. */
  readonly isStampPending?: boolean;
};

/**
 * A witness's evidence for the checkpoint at `treeSize`. A log witness's evidence is the signature lines of its
 * response.
 */
export type WitnessParts = {
  readonly name: string;
  readonly kind: WitnessKind;
  readonly treeSize: number;
  readonly evidence: Uint8Array;
  readonly detail: JsonObject;
  readonly landedAt: Date;
};

/**
 * Prepares the shared parts of a batch's bundles. Cosignatures among the evidence are joined to their checkpoints'
 * notes, so that the notes alone carry them too. Throws FormatError when a note or a cosignature cannot be read.
 */
export function prepareBatch({ batch, logKey, notes, witnesses }: BatchParts): PreparedBatch {
  const checkpoints = notes.map((note) => cosignedCheckpoint(note, witnesses));
  const [first] = checkpoints;
  if (first === undefined) throw new FormatError('a bundle needs the checkpoint of its batch');
  return {
    batch: create(BundleBatchSchema, {
      id: batch.id,
      rootHash: toHex(first.rootHash),
      firstIndex: BigInt(batch.firstIndex),
      treeSize: BigInt(first.size),
    }),
    rootHash: first.rootHash,
    logId: noteKeyHash(first.origin, logKey),
    checkpoints,
    witnesses: witnesses.map(bundleWitness),
  };
}

/** Assembles the bundle of a leaf. */
export function assembleBundle(shared: PreparedBatch, leafParts: LeafParts): ProofBundle {
  const { submission, statement, inclusionProofs, isStampPending } = leafParts;
  const record = recordOf(leafParts);
  return create(ProofBundleSchema, {
    mediaType: BUNDLE_MEDIA_TYPE,
    submission: {
      id: submission.submissionId,
      environment: environmentNumber(submission.environment),
      submittedAt: timestampOf(submission.submittedAt),
      artifactSha256: submission.artifactSha256,
      leafSha256: toHex(leafHash(record)),
      ...(typeof statement !== 'string' && { statementErasedAt: timestampOf(statement.erasedAt) }),
    },
    sigstoreBundle: sigstoreBundleOf(shared, leafParts, record),
    batch: shared.batch,
    checkpoints: shared.checkpoints.map(({ size, note }, i) => ({
      treeSize: BigInt(size),
      note,
      inclusionProof: [...(inclusionProofs[i] ?? [])],
    })),
    witnesses: [...shared.witnesses],
    ...(isStampPending && { stampPending: true }),
  });
}

function timestampOf(text: string) {
  return timestampFromDate(new Date(text));
}

/** The leaf record. */
function recordOf({ statement, signature, dsseKey: publicKey }: LeafParts): Uint8Array {
  if (typeof statement === 'string') return rebuildLeaf(utf8(statement), signature, publicKey).record;
  return leafRecord({ digest: statement.digest, signature, publicKey });
}

/** The Sigstore bundle inside; its checkpoint is the batch's, cosignatures included. */
function sigstoreBundleOf(
  { checkpoints: [first], rootHash, logId }: PreparedBatch,
  { statement, signature, dsseKey, logIndex, stamps, inclusionProofs: [inclusionProof = []] }: LeafParts,
  record: Uint8Array,
): JsonObject {
  const { size = 0, note = '' } = first ?? {};
  const entry = {
    keyHint: dsseKeyHint(dsseKey),
    leafRecord: record,
    logIndex,
    logId,
    checkpoint: { size, rootHash, note, inclusionProof },
    stamps,
  };
  if (typeof statement !== 'string') return sigstoreEntry(entry);
  return sigstoreBundle({ ...entry, statement: utf8(statement), signature });
}

function cosignedCheckpoint(note: string, witnesses: readonly WitnessParts[]) {
  const { origin, size, rootHash } = parseCheckpoint(note);
  const cosignatures = witnesses
    .filter(({ kind, treeSize }) => kind === WitnessKind.LOG_WITNESS && treeSize === size)
    .flatMap(({ evidence }) => parseSignatureLines(fromUtf8(evidence)));
  return { origin, size, rootHash, note: appendSignatures(note, cosignatures) };
}

function bundleWitness({ treeSize, landedAt, ...said }: WitnessParts): BundleWitness {
  return create(BundleWitnessSchema, {
    ...said,
    treeSize: BigInt(treeSize),
    landedAt: timestampFromDate(landedAt),
  });
}
