/** Parsing of Sigstore bundles v0.3. Verifies nothing. */

import { SIGSTORE_BUNDLE_MEDIA_TYPE } from '../bundle/sigstore-bundle.js';
import { HASH_BYTES } from '../log/merkle.js';
import { IN_TOTO_PAYLOAD_TYPE } from '../statement/dsse.js';
import { parseJsonText } from '../verify/read/json-text.js';
import { type ForeignCheckpoint, parseForeignCheckpoint } from './checkpoint.js';
import {
  bytes,
  findMember,
  getMember,
  index,
  items,
  type JsonNode,
  message,
  oneOf,
  parsed,
  refused,
  text,
} from './json-node.js';

/** Maximum size of a bundle. */
export const MAX_SIGSTORE_BUNDLE_BYTES = 4 * 1024 * 1024;

/** The signed content: an in-toto statement in a DSSE envelope, or the artifact itself. */
export type SignedContent =
  | { readonly kind: 'dsse'; readonly payload: Uint8Array; readonly signature: Uint8Array }
  | { readonly kind: 'message'; readonly sha256: Uint8Array | undefined; readonly signature: Uint8Array };

/** An entry of a transparency log. `proof.index` is the leaf's in the tree of the checkpoint, `logIndex` in all of the log. */
export type LogEntry = {
  readonly path: string;
  readonly logIndex: number;
  readonly logId: Uint8Array;
  readonly kind: string;
  readonly version: string;
  readonly body: Uint8Array;
  /** Unix seconds, signed by the log in its promise. */
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

/**
 * The bundle's parts. `timestamps` are TimeStampResps over the signature, `ignored` JSON pointers to members that this
 * version does not know.
 */
export type ParsedSigstoreBundle = {
  readonly content: SignedContent;
  readonly entries: readonly LogEntry[];
  readonly timestamps: readonly { readonly path: string; readonly response: Uint8Array }[];
  readonly ignored: readonly string[];
};

/** A bundle or entry of a kind that is not supported here, but may be valid. */
export class UncheckableError extends Error {
  override readonly name = 'UncheckableError';
}

/** The fields of each message of a bundle v0.3. */
const FIELDS = {
  bundle: ['mediaType', 'verificationMaterial', 'messageSignature', 'dsseEnvelope'],
  material: ['publicKey', 'x509CertificateChain', 'certificate', 'tlogEntries', 'timestampVerificationData'],
  publicKey: ['hint'],
  timestamps: ['rfc3161Timestamps'],
  timestamp: ['signedTimestamp'],
  envelope: ['payload', 'payloadType', 'signatures'],
  signature: ['sig', 'keyid'],
  message: ['messageDigest', 'signature'],
  digest: ['algorithm', 'digest'],
  entry: [
    'logIndex',
    'logId',
    'kindVersion',
    'integratedTime',
    'inclusionPromise',
    'inclusionProof',
    'canonicalizedBody',
  ],
  logId: ['keyId'],
  kindVersion: ['kind', 'version'],
  promise: ['signedEntryTimestamp'],
  proof: ['logIndex', 'rootHash', 'treeSize', 'hashes', 'checkpoint'],
  checkpoint: ['envelope'],
} as const;

/**
 * Parses a bundle given as JSON text or UTF-8 bytes. Throws FormatError, and UncheckableError for a bundle of another
 * version, one signed under a certificate, and a DSSE envelope without a statement.
 */
export function parseSigstoreBundle(input: string | Uint8Array): ParsedSigstoreBundle {
  const ignored: string[] = [];
  const json: JsonNode = { value: parseJsonText(input, MAX_SIGSTORE_BUNDLE_BYTES), path: '', ignored };
  checkMediaType(findMember(json, 'mediaType') ?? getMember(json, 'media_type'));
  const root = message(json, FIELDS.bundle);
  const material = message(getMember(root, 'verificationMaterial'), FIELDS.material);
  checkSignerKind(material);
  const stamps = findMember(material, 'timestampVerificationData');
  return {
    content: signedContent(root),
    entries: items(findMember(material, 'tlogEntries')).map(logEntry),
    timestamps: items(stamps && findMember(message(stamps, FIELDS.timestamps), 'rfc3161Timestamps')).map(
      (stamp) => ({
        path: stamp.path,
        response: bytes(getMember(message(stamp, FIELDS.timestamp), 'signedTimestamp')),
      }),
    ),
    ignored,
  };
}

/** The media type of version 0.3 before it got a name of its own. */
const FIRST_MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle+json;version=0.3';
const ANY_MEDIA_TYPE = /^application\/vnd\.dev\.sigstore\.bundle(\.v\d+\.\d+\+json|\+json;version=\d+\.\d+)$/;

function checkMediaType(node: JsonNode): void {
  const type = text(node);
  if (type === SIGSTORE_BUNDLE_MEDIA_TYPE || type === FIRST_MEDIA_TYPE) return;
  if (!ANY_MEDIA_TYPE.test(type)) throw refused(node.path, `must be ${SIGSTORE_BUNDLE_MEDIA_TYPE}`);
  throw new UncheckableError('it is a Sigstore bundle of another version; only version 0.3 is checked here');
}

function checkSignerKind(material: JsonNode): void {
  const [kind, signer] = oneOf(material, 'publicKey', 'certificate', 'x509CertificateChain');
  if (kind !== 'publicKey') {
    throw new UncheckableError(
      'it is signed under a certificate; only bundles signed by a public key are checked here',
    );
  }
  message(signer, FIELDS.publicKey);
}

function signedContent(root: JsonNode): SignedContent {
  const [kind, content] = oneOf(root, 'dsseEnvelope', 'messageSignature');
  return kind === 'dsseEnvelope' ? dsse(content) : messageSignature(content);
}

function dsse(node: JsonNode): SignedContent {
  const envelope = message(node, FIELDS.envelope);
  const type = getMember(envelope, 'payloadType');
  if (text(type) !== IN_TOTO_PAYLOAD_TYPE) {
    throw new UncheckableError(`what it signs is of another type than ${IN_TOTO_PAYLOAD_TYPE}`);
  }
  const signatures = getMember(envelope, 'signatures');
  const [only, ...others] = items(signatures);
  if (only === undefined || others.length > 0) throw refused(signatures.path, 'must be exactly one');
  return {
    kind: 'dsse',
    payload: bytes(getMember(envelope, 'payload')),
    signature: bytes(getMember(message(only, FIELDS.signature), 'sig')),
  };
}

function messageSignature(node: JsonNode): SignedContent {
  const signed = message(node, FIELDS.message);
  const found = findMember(signed, 'messageDigest');
  const digest = found && message(found, FIELDS.digest);
  const isSha256 = digest && text(getMember(digest, 'algorithm')) === 'SHA2_256';
  return {
    kind: 'message',
    sha256: isSha256 ? bytes(getMember(digest, 'digest'), HASH_BYTES) : undefined,
    signature: bytes(getMember(signed, 'signature')),
  };
}

function logEntry(node: JsonNode): LogEntry {
  const entry = message(node, FIELDS.entry);
  const kindVersion = message(getMember(entry, 'kindVersion'), FIELDS.kindVersion);
  const promise = findMember(entry, 'inclusionPromise');
  return {
    path: entry.path,
    logIndex: indexOrZero(entry, 'logIndex'),
    logId: bytes(getMember(message(getMember(entry, 'logId'), FIELDS.logId), 'keyId'), HASH_BYTES),
    kind: text(getMember(kindVersion, 'kind')),
    version: text(getMember(kindVersion, 'version')),
    body: bytes(getMember(entry, 'canonicalizedBody')),
    integratedTime: indexOrZero(entry, 'integratedTime'),
    promise: promise && bytes(getMember(message(promise, FIELDS.promise), 'signedEntryTimestamp')),
    proof: inclusionProof(message(getMember(entry, 'inclusionProof'), FIELDS.proof)),
  };
}

function inclusionProof(proof: JsonNode): LogEntry['proof'] {
  const checkpoint = message(getMember(proof, 'checkpoint'), FIELDS.checkpoint);
  return {
    index: indexOrZero(proof, 'logIndex'),
    treeSize: index(getMember(proof, 'treeSize')),
    rootHash: bytes(getMember(proof, 'rootHash'), HASH_BYTES),
    hashes: items(findMember(proof, 'hashes')).map((hash) => bytes(hash, HASH_BYTES)),
    checkpoint: parsed(getMember(checkpoint, 'envelope'), parseForeignCheckpoint),
  };
}

/** ProtoJSON omits zero. */
function indexOrZero(node: JsonNode, name: string): number {
  const found = findMember(node, name);
  return found ? index(found) : 0;
}
