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
import { fromUtf8, toHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { parseCheckpoint } from '../log/checkpoint.js';
import { appendSignatures, noteKeyHash, parseSignatureLines } from '../log/note.js';
import { dsseKeyHint } from '../statement/dsse.js';
import { rebuildLeaf } from '../statement/leaf.js';
import { type StatementFields, statementBytes } from '../statement/statement.js';
import { sigstoreBundle } from './sigstore-bundle.js';

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

/** One leaf of a batch. */
export type LeafParts = {
  readonly statement: StatementFields;
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
  const { statement, signature, dsseKey, inclusionProofs, isStampPending } = leafParts;
  const statementText = statementBytes(statement);
  const leaf = rebuildLeaf(statementText, signature, dsseKey);
  return create(ProofBundleSchema, {
    mediaType: BUNDLE_MEDIA_TYPE,
    submission: {
      id: statement.submissionId,
      environment: environmentNumber(statement.environment),
      submittedAt: timestampFromDate(new Date(statement.submittedAt)),
      artifactSha256: statement.artifactSha256,
      leafSha256: toHex(leaf.hash),
    },
    sigstoreBundle: sigstoreBundleOf(shared, leafParts, statementText, leaf.record),
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

/** The Sigstore bundle inside; its checkpoint is the batch's, cosignatures included. */
function sigstoreBundleOf(
  { checkpoints: [first], rootHash, logId }: PreparedBatch,
  { signature, dsseKey, logIndex, stamps, inclusionProofs: [inclusionProof = []] }: LeafParts,
  statement: Uint8Array,
  leafRecord: Uint8Array,
): JsonObject {
  const { size = 0, note = '' } = first ?? {};
  return sigstoreBundle({
    statement,
    signature,
    keyHint: dsseKeyHint(dsseKey),
    leafRecord,
    logIndex,
    logId,
    checkpoint: { size, rootHash, note, inclusionProof },
    stamps,
  });
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
