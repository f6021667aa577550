/**
 * The Sigstore bundle v0.3 of a submission: DSSE envelope, leaf record and inclusion, in the ProtoJSON that
 * Sigstore's own tools read. There is exactly one such bundle for a submission and a checkpoint, but for the time stamps
 * over its signature, so our verifier builds it anew and compares.
 */

import { toBase64 } from '../bytes/encoding.js';
import { type DsseEnvelope, dsseEnvelope } from '../statement/dsse.js';
import { LEAF_KIND, LEAF_VERSION } from '../statement/leaf.js';

export const SIGSTORE_BUNDLE_MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json';

/** The bundle's JSON. 64-bit integers are strings and bytes base64, as ProtoJSON has them. */
export type SigstoreBundle = {
  mediaType: string;
  verificationMaterial: {
    publicKey: { hint: string };
    timestampVerificationData?: { rfc3161Timestamps: { signedTimestamp: string }[] };
    tlogEntries: TlogEntry[];
  };
  dsseEnvelope: DsseEnvelope;
};

/** A leaf's place in the log. `integratedTime` is "0": the log attests no time, its witnesses do. */
type TlogEntry = {
  logIndex: string;
  logId: { keyId: string };
  kindVersion: { kind: string; version: string };
  integratedTime: string;
  inclusionProof: {
    logIndex: string;
    rootHash: string;
    treeSize: string;
    hashes: string[];
    checkpoint: { envelope: string };
  };
  canonicalizedBody: string;
};

/** The parts of the bundle. `logId` is the whole hash behind the log's note key id; `keyHint` names the DSSE key. */
type SigstoreBundleParts = EntryParts & {
  readonly statement: Uint8Array;
  readonly signature: Uint8Array;
};

/** The parts without those of the envelope. */
type EntryParts = {
  readonly keyHint: string;
  readonly leafRecord: Uint8Array;
  readonly logIndex: number;
  readonly logId: Uint8Array;
  readonly checkpoint: {
    readonly size: number;
    readonly rootHash: Uint8Array;
    readonly note: string;
    readonly inclusionProof: readonly Uint8Array[];
  };
  /** Time stamps over the signature: each a TimeStampResp (DER) in base64. */
  readonly stamps?: readonly string[] | undefined;
};

/** Assembles the bundle. Members are in canonical order (RFC 8785), so that `jcs` is fast. */
export function sigstoreBundle(parts: SigstoreBundleParts): SigstoreBundle {
  return { dsseEnvelope: dsseEnvelope(parts.statement, parts.signature), ...sigstoreEntry(parts) };
}

/** What is left of the bundle without its envelope, once the statement has been erased: the leaf record and its inclusion. */
export function sigstoreEntry(parts: EntryParts): Omit<SigstoreBundle, 'dsseEnvelope'> {
  const rfc3161Timestamps = parts.stamps?.map((signedTimestamp) => ({ signedTimestamp })) ?? [];
  return {
    mediaType: SIGSTORE_BUNDLE_MEDIA_TYPE,
    verificationMaterial: {
      publicKey: { hint: parts.keyHint },
      ...(rfc3161Timestamps.length === 0 ? {} : { timestampVerificationData: { rfc3161Timestamps } }),
      tlogEntries: [tlogEntry(parts)],
    },
  };
}

function tlogEntry({ logIndex, logId, leafRecord, checkpoint }: EntryParts): TlogEntry {
  return {
    canonicalizedBody: toBase64(leafRecord),
    inclusionProof: {
      checkpoint: { envelope: checkpoint.note },
      hashes: checkpoint.inclusionProof.map(toBase64),
      logIndex: String(logIndex),
      rootHash: toBase64(checkpoint.rootHash),
      treeSize: String(checkpoint.size),
    },
    integratedTime: '0',
    kindVersion: { kind: LEAF_KIND, version: LEAF_VERSION },
    logId: { keyId: toBase64(logId) },
    logIndex: String(logIndex),
  };
}
