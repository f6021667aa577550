/** Checks that a log entry is about the bundle's signature, for each kind of entry in Sigstore's logs. */

import { fromPem } from '../asn1/pem.js';
import { fromHex, fromUtf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { digest, type HashName } from '../rfc3161/algorithm.js';
import { parseJsonText } from '../verify/read/json-text.js';
import { type LogEntry, UncheckableError } from './bundle.js';
import {
  bytes,
  fromProtoBase64,
  getMember,
  items,
  type JsonNode,
  parsed,
  refused,
  text,
} from './json-node.js';

/**
 * What the entry must be about. `signed` are the signed bytes, undefined if only their SHA-256 is known; `payload` is a
 * DSSE envelope's.
 */
export type Signed = {
  readonly payload: Uint8Array | undefined;
  readonly signed: Uint8Array | undefined;
  readonly signedSha256: Uint8Array;
  readonly signature: Uint8Array;
  readonly spki: Uint8Array;
};

/** Contents of a body: digest of the signed bytes or of the envelope's payload, signature, and the key's SPKI. */
type EntryBody = {
  readonly over: 'signed' | 'payload';
  readonly hash: HashName;
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  readonly spki: Uint8Array;
};

const MAX_BODY_BYTES = 1024 * 1024;
const HASHES: ReadonlyMap<string, HashName> = new Map([
  ['sha256', 'SHA-256'],
  ['sha384', 'SHA-384'],
  ['sha512', 'SHA-512'],
  ['SHA2_256', 'SHA-256'],
  ['SHA2_384', 'SHA-384'],
  ['SHA2_512', 'SHA-512'],
]);

/** By kind and version: Rekor v1 has 0.0.1 (of intoto 0.0.2), v2 has 0.0.2. */
const READERS: ReadonlyMap<string, (spec: JsonNode) => EntryBody> = new Map([
  ['hashedrekord 0.0.1', hashedRekordV1],
  ['hashedrekord 0.0.2', hashedRekordV2],
  ['dsse 0.0.1', dsseV1],
  ['dsse 0.0.2', dsseV2],
  ['intoto 0.0.2', intoto],
]);

/**
 * Checks that the entry is of this signature by this key over this content. Throws FormatError, and UncheckableError if
 * the entry's kind is not supported.
 */
export async function checkEntry(entry: LogEntry, expected: Signed): Promise<void> {
  const body = readBody(entry);
  if (!equalBytes(body.signature, expected.signature)) throw new FormatError('it is of another signature');
  if (!equalBytes(body.spki, expected.spki)) throw new FormatError('it is of another key');
  if (!equalBytes(body.digest, await digestOf(body, expected))) {
    throw new FormatError('it is of a signature over something else');
  }
}

async function digestOf({ over, hash }: EntryBody, expected: Signed): Promise<Uint8Array> {
  const content = over === 'payload' ? expected.payload : expected.signed;
  if (content !== undefined) return digest(hash, content);
  if (over === 'payload') throw new FormatError('it is of an envelope, the bundle has none');
  if (hash !== 'SHA-256') throw new FormatError(`its ${hash} can only be checked with the file`);
  return expected.signedSha256;
}

function readBody({ kind, version, body }: LogEntry): EntryBody {
  const root: JsonNode = { value: parseJsonText(fromUtf8(body), MAX_BODY_BYTES), path: '' };
  if (text(getMember(root, 'kind')) !== kind || text(getMember(root, 'apiVersion')) !== version) {
    throw new FormatError('its body is of another kind or version');
  }
  const read = READERS.get(`${kind} ${version}`);
  if (read === undefined) throw new UncheckableError(`entries of kind ${kind} ${version} are not known here`);
  return read(getMember(root, 'spec'));
}

function hashedRekordV1(spec: JsonNode): EntryBody {
  const hash = getMember(spec, 'data', 'hash');
  const signature = getMember(spec, 'signature');
  return {
    over: 'signed',
    ...hexDigest(hash),
    signature: bytes(getMember(signature, 'content')),
    spki: keyInPem(getMember(signature, 'publicKey', 'content')),
  };
}

function hashedRekordV2(spec: JsonNode): EntryBody {
  const record = getMember(spec, 'hashedRekordV002');
  return {
    over: 'signed',
    ...base64Digest(getMember(record, 'data')),
    ...signatureV2(getMember(record, 'signature')),
  };
}

function dsseV1(spec: JsonNode): EntryBody {
  const only = onlyItem(getMember(spec, 'signatures'));
  return {
    over: 'payload',
    ...hexDigest(getMember(spec, 'payloadHash')),
    signature: bytes(getMember(only, 'signature')),
    spki: keyInPem(getMember(only, 'verifier')),
  };
}

function dsseV2(spec: JsonNode): EntryBody {
  const envelope = getMember(spec, 'dsseV002');
  return {
    over: 'payload',
    ...base64Digest(getMember(envelope, 'payloadHash')),
    ...signatureV2(onlyItem(getMember(envelope, 'signatures'))),
  };
}

function intoto(spec: JsonNode): EntryBody {
  const content = getMember(spec, 'content');
  const only = onlyItem(getMember(content, 'envelope', 'signatures'));
  return {
    over: 'payload',
    ...hexDigest(getMember(content, 'payloadHash')),
    // Rekor encodes the envelope's base64 once more.
    signature: parsed(getMember(only, 'sig'), (twice) => fromProtoBase64(fromUtf8(fromProtoBase64(twice)))),
    spki: keyInPem(getMember(only, 'publicKey')),
  };
}

function signatureV2(signature: JsonNode): Pick<EntryBody, 'signature' | 'spki'> {
  return {
    signature: bytes(getMember(signature, 'content')),
    spki: bytes(getMember(signature, 'verifier', 'publicKey', 'rawBytes')),
  };
}

function hexDigest(hash: JsonNode): Pick<EntryBody, 'hash' | 'digest'> {
  return { hash: hashOf(hash), digest: parsed(getMember(hash, 'value'), (hex) => fromHex(hex)) };
}

function base64Digest(hash: JsonNode): Pick<EntryBody, 'hash' | 'digest'> {
  return { hash: hashOf(hash), digest: bytes(getMember(hash, 'digest')) };
}

function hashOf(node: JsonNode): HashName {
  const algorithm = getMember(node, 'algorithm');
  const hash = HASHES.get(text(algorithm));
  if (hash === undefined) throw refused(algorithm.path, 'is not a hash that is known here');
  return hash;
}

/** The SPKI in the base64 of a PEM text. */
function keyInPem(node: JsonNode): Uint8Array {
  return parsed(node, (base64) => fromPem('PUBLIC KEY', fromUtf8(fromProtoBase64(base64))));
}

function onlyItem(node: JsonNode): JsonNode {
  const [only, ...others] = items(node);
  if (only === undefined || others.length > 0) throw refused(node.path, 'must be exactly one');
  return only;
}
