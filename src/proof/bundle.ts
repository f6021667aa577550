/** A submission's proof bundle: everything that is needed to check it offline, in one message. */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type BundleCheckpoint,
  BundleCheckpointSchema,
  type ProofBundle,
  ProofBundleSchema,
  WitnessKind,
} from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { parseCheckpoint } from './checkpoint.js';
import { dsseKeyId } from './dsse.js';
import { fromUtf8, toHex } from './encoding.js';
import { FormatError } from './format-error.js';
import { rebuildLeaf } from './leaf.js';
import { appendSignatures, noteKeyHash, parseSignatureLines } from './note.js';
import { sigstoreBundle } from './sigstore-bundle.js';
import { type StatementFields, statementBytes } from './statement.js';

export const BUNDLE_MEDIA_TYPE = 'application/vnd.attestation-service.bundle.v1+json';

/** The name of the log itself among a batch's witnesses, and in policies, where its origin does as well. */
export const LOG_WITNESS_NAME = 'log';

/** What a bundle is assembled from. */
export type BundleParts = {
  readonly statement: StatementFields;
  /** The stored DSSE signature, DER. */
  readonly signature: Uint8Array;
  /** The DSSE key that made it, SPKI in DER. */
  readonly dsseKey: Uint8Array;
  readonly logIndex: number;
  /** The log's raw Ed25519 key. */
  readonly logKey: Uint8Array;
  readonly batch: { readonly id: string; readonly firstIndex: number };
  /** The batch's checkpoint first, then later ones in order of size; each a signed note and the leaf's inclusion in it. */
  readonly checkpoints: readonly {
    readonly note: string;
    readonly inclusionProof: readonly Uint8Array[];
  }[];
  readonly witnesses: readonly WitnessParts[];
};

/** What one witness said of the checkpoint at `treeSize`. A log witness's evidence is its signature lines, as it answered. */
export type WitnessParts = {
  readonly name: string;
  readonly kind: WitnessKind;
  readonly treeSize: number;
  readonly evidence: Uint8Array;
  readonly detail: JsonObject;
  readonly landedAt: Date;
};

/**
 * Assembles the bundle. Cosignatures among the evidence are joined to their checkpoints' notes, so that the notes alone
 * carry them too. Throws FormatError when a note or a cosignature cannot be read.
 */
export function assembleBundle(parts: BundleParts): ProofBundle {
  const { statement, batch, witnesses } = parts;
  const leaf = rebuildLeaf(statementBytes(statement), parts.signature, parts.dsseKey);
  const checkpoints = parts.checkpoints.map((checkpoint) => bundleCheckpoint(checkpoint, witnesses));
  const [first] = checkpoints;
  if (first === undefined) throw new FormatError('a bundle needs the checkpoint of its batch');
  const { rootHash, size } = parseCheckpoint(first.note);
  return create(ProofBundleSchema, {
    mediaType: BUNDLE_MEDIA_TYPE,
    submission: {
      id: statement.submissionId,
      environment: statement.environment === 'live' ? Environment.LIVE : Environment.TEST,
      submittedAt: timestampFromDate(new Date(statement.submittedAt)),
      artifactSha256: statement.artifactSha256,
      leafSha256: toHex(leaf.hash),
    },
    sigstoreBundle: sigstoreBundleOf(parts, leaf.record, first),
    batch: {
      id: batch.id,
      rootHash: toHex(rootHash),
      firstIndex: BigInt(batch.firstIndex),
      treeSize: BigInt(size),
    },
    checkpoints,
    witnesses: witnesses.map(bundleWitness),
  });
}

/** The Sigstore bundle inside; `checkpoint` is the batch's, cosignatures included. */
function sigstoreBundleOf(
  parts: BundleParts,
  leafRecord: Uint8Array,
  checkpoint: BundleCheckpoint,
): JsonObject {
  const { origin, size, rootHash } = parseCheckpoint(checkpoint.note);
  return sigstoreBundle({
    statement: statementBytes(parts.statement),
    signature: parts.signature,
    keyId: dsseKeyId(parts.dsseKey),
    leafRecord,
    logIndex: parts.logIndex,
    logId: noteKeyHash(origin, parts.logKey),
    checkpoint: { size, rootHash, note: checkpoint.note, inclusionProof: checkpoint.inclusionProof },
  });
}

function bundleCheckpoint(
  { note, inclusionProof }: BundleParts['checkpoints'][number],
  witnesses: readonly WitnessParts[],
): BundleCheckpoint {
  const { size } = parseCheckpoint(note);
  const cosignatures = witnesses
    .filter(({ kind, treeSize }) => kind === WitnessKind.LOG_WITNESS && treeSize === size)
    .flatMap(({ evidence }) => parseSignatureLines(fromUtf8(evidence)));
  return create(BundleCheckpointSchema, {
    treeSize: BigInt(size),
    note: appendSignatures(note, cosignatures),
    inclusionProof: [...inclusionProof],
  });
}

function bundleWitness({ treeSize, landedAt, ...said }: WitnessParts) {
  return { ...said, treeSize: BigInt(treeSize), landedAt: timestampFromDate(landedAt) };
}
