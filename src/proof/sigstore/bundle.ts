/** A Sigstore bundle v0.3 taken apart. What comes out is well-formed; nothing in it is proven yet. */
import { IN_TOTO_PAYLOAD_TYPE } from '../dsse.js';
import { FormatError } from '../format-error.js';
import { HASH_BYTES } from '../merkle.js';
import { SIGSTORE_BUNDLE_MEDIA_TYPE } from '../sigstore-bundle.js';
import { parseJsonText } from '../verify/json-text.js';
import { type ForeignCheckpoint, parseForeignCheckpoint } from './checkpoint.js';
import {
  bytes,
  findMember,
  getMember,
  index,
  items,
  type JsonNode,
  parsed,
  refused,
  text,
} from './json-node.js';

/** Longest bundle that is read. */
export const MAX_SIGSTORE_BUNDLE_BYTES = 4 * 1024 * 1024;

/** What is signed: an in-toto statement in a DSSE envelope, or the artifact itself. */
export type SignedContent =
  | { readonly kind: 'dsse'; readonly payload: Uint8Array; readonly signature: Uint8Array }
  | { readonly kind: 'message'; readonly sha256: Uint8Array | undefined; readonly signature: Uint8Array };

/** An entry of a transparency log. `index` is the leaf's in the tree of the checkpoint. */
export type LogEntry = {
  readonly path: string;
  readonly logIndex: number;
  readonly logId: Uint8Array;
  readonly kind: string;
  readonly version: string;
  readonly body: Uint8Array;
  /** Unix seconds; a log with its promise vouches for them. */
  readonly integratedTime: number;
  readonly promise: Uint8Array | undefined;
  readonly proof: {
    readonly index: number;
    readonly treeSize: number;
    readonly rootHash: Uint8Array;
    readonly hashes: readonly Uint8Array[];
    readonly checkpoint: ForeignCheckpoint;
  };
};

/** The bundle's parts. `timestamps` are TimeStampResps over the signature. */
export type SigstoreFacts = {
  readonly content: SignedContent;
  readonly entries: readonly LogEntry[];
  readonly timestamps: readonly { readonly path: string; readonly response: Uint8Array }[];
};

/** Reads a bundle given as JSON text or UTF-8 bytes. Throws FormatError that names what is wrong. */
export function parseSigstoreBundle(input: string | Uint8Array): SigstoreFacts {
  const root: JsonNode = { value: parseJsonText(input, MAX_SIGSTORE_BUNDLE_BYTES), path: '' };
  checkMediaType(getMember(root, 'mediaType'));
  const material = getMember(root, 'verificationMaterial');
  if (findMember(material, 'publicKey') === undefined) {
    throw new FormatError(
      'it is signed under a certificate; only bundles signed by a public key are checked here',
    );
  }
  const stamps = findMember(material, 'timestampVerificationData');
  return {
    content: signedContent(root),
    entries: items(findMember(material, 'tlogEntries')).map(logEntry),
    timestamps: items(stamps && findMember(stamps, 'rfc3161Timestamps')).map((stamp) => ({
      path: stamp.path,
      response: bytes(getMember(stamp, 'signedTimestamp')),
    })),
  };
}

/** The media type of version 0.3 before it got a name of its own. */
const FIRST_MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle+json;version=0.3';

function checkMediaType(node: JsonNode): void {
  if (text(node) !== SIGSTORE_BUNDLE_MEDIA_TYPE && text(node) !== FIRST_MEDIA_TYPE) {
    throw refused(node.path, `must be ${SIGSTORE_BUNDLE_MEDIA_TYPE}`);
  }
}

function signedContent(root: JsonNode): SignedContent {
  const envelope = findMember(root, 'dsseEnvelope');
  const message = findMember(root, 'messageSignature');
  if ((envelope === undefined) === (message === undefined)) {
    throw refused('', 'must have either dsseEnvelope or messageSignature');
  }
  return envelope ? dsse(envelope) : messageSignature(message!);
}

function dsse(envelope: JsonNode): SignedContent {
  const type = getMember(envelope, 'payloadType');
  if (text(type) !== IN_TOTO_PAYLOAD_TYPE) throw refused(type.path, `must be ${IN_TOTO_PAYLOAD_TYPE}`);
  const signatures = getMember(envelope, 'signatures');
  const [only, ...others] = items(signatures);
  if (only === undefined || others.length > 0) throw refused(signatures.path, 'must be exactly one');
  return {
    kind: 'dsse',
    payload: bytes(getMember(envelope, 'payload')),
    signature: bytes(getMember(only, 'sig')),
  };
}

function messageSignature(message: JsonNode): SignedContent {
  const signature = bytes(getMember(message, 'signature'));
  const digest = findMember(message, 'messageDigest');
  const isSha256 = digest && text(getMember(digest, 'algorithm')) === 'SHA2_256';
  return {
    kind: 'message',
    sha256: isSha256 ? bytes(getMember(digest, 'digest'), HASH_BYTES) : undefined,
    signature,
  };
}

function logEntry(entry: JsonNode): LogEntry {
  const proof = getMember(entry, 'inclusionProof');
  const promise = findMember(entry, 'inclusionPromise');
  const integratedTime = findMember(entry, 'integratedTime');
  const logIndex = findMember(entry, 'logIndex');
  const leafIndex = findMember(proof, 'logIndex');
  return {
    path: entry.path,
    // ProtoJSON leaves out what is zero.
    logIndex: logIndex ? index(logIndex) : 0,
    logId: bytes(getMember(entry, 'logId', 'keyId'), HASH_BYTES),
    kind: text(getMember(entry, 'kindVersion', 'kind')),
    version: text(getMember(entry, 'kindVersion', 'version')),
    body: bytes(getMember(entry, 'canonicalizedBody')),
    integratedTime: integratedTime ? index(integratedTime) : 0,
    promise: promise && bytes(getMember(promise, 'signedEntryTimestamp')),
    proof: {
      index: leafIndex ? index(leafIndex) : 0,
      treeSize: index(getMember(proof, 'treeSize')),
      rootHash: bytes(getMember(proof, 'rootHash'), HASH_BYTES),
      hashes: items(findMember(proof, 'hashes')).map((hash) => bytes(hash, HASH_BYTES)),
      checkpoint: parsed(getMember(proof, 'checkpoint', 'envelope'), parseForeignCheckpoint),
    },
  };
}
