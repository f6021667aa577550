/** The steps about the artifact: the key made the signature, and the signed content is about this artifact. */

import type { PublicKey } from '../asn1/public-key.js';
import { fromHex, fromUtf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes, sha256 } from '../bytes/primitives.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../statement/dsse.js';
import { parseJsonText } from '../verify/read/json-text.js';
import { type Check, failed, missing, passed } from '../verify/report.js';
import { MAX_SIGSTORE_BUNDLE_BYTES, type SignedContent } from './bundle.js';
import { findMember, getMember, items, type JsonNode, parsed, refused, text } from './json-node.js';

/** The artifact: its SHA-256 (32 bytes), and its bytes, which a signature over the artifact itself needs. */
export type Artifact = { readonly sha256: Uint8Array; readonly bytes?: Uint8Array | undefined };

const STATEMENT_TYPES = ['https://in-toto.io/Statement/v1', 'https://in-toto.io/Statement/v0.1'];

/** The signed bytes and their SHA-256. */
export function signedBytes(
  content: SignedContent,
  artifact: Artifact,
): { signed: Uint8Array | undefined; signedSha256: Uint8Array } {
  if (content.kind === 'message') return { signed: artifact.bytes, signedSha256: artifact.sha256 };
  const signed = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, content.payload);
  return { signed, signedSha256: sha256(signed) };
}

/** Checks that the key made the signature. */
export async function checkSignature(
  { signature }: SignedContent,
  signed: Uint8Array | undefined,
  key: PublicKey,
): Promise<Check> {
  if (signed === undefined) {
    return missing('signature.no_file', 'the signature is over the file itself: its digest is not enough');
  }
  return (await key.verify(signed, signature))
    ? passed('signature.valid', `the signature is by the given key (${key.algorithm})`)
    : failed('signature.invalid', `the signature is not by the given key (${key.algorithm})`);
}

/** Checks that the artifact is the signed one, or a subject of the signed statement. */
export function checkArtifact(content: SignedContent, artifact: Artifact): Check {
  if (content.kind === 'dsse') return checkSubjects(content.payload, artifact.sha256);
  const path = '/messageSignature/messageDigest';
  if (content.sha256 === undefined) {
    return missing('artifact.no_digest', 'the bundle states no SHA-256 of what was signed');
  }
  return equalBytes(content.sha256, artifact.sha256)
    ? passed('artifact.digest', 'the bundle is about this artifact')
    : failed('artifact.mismatch', 'the bundle is about another artifact', path);
}

function checkSubjects(payload: Uint8Array, artifactSha256: Uint8Array): Check {
  try {
    const statement = { value: parseJsonText(fromUtf8(payload), MAX_SIGSTORE_BUNDLE_BYTES), path: '' };
    const type = getMember(statement, '_type');
    if (!STATEMENT_TYPES.includes(text(type))) throw refused(type.path, 'is not a known in-toto statement');
    return items(getMember(statement, 'subject')).some((subject) => isOf(subject, artifactSha256))
      ? passed('artifact.subject', 'the artifact is a subject of the signed statement')
      : failed(
          'artifact.mismatch',
          'the signed statement is about another artifact',
          '/dsseEnvelope/payload',
        );
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return failed(
      'artifact.statement',
      `the signed statement cannot be read: ${error.message}`,
      '/dsseEnvelope/payload',
    );
  }
}

function isOf(subject: JsonNode, artifactSha256: Uint8Array): boolean {
  const digest = findMember(getMember(subject, 'digest'), 'sha256');
  return (
    digest !== undefined &&
    equalBytes(
      parsed(digest, (hex) => fromHex(hex)),
      artifactSha256,
    )
  );
}
