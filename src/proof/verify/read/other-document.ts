/** What stands in the place of a bundle, in words: other documents of the service are taken for one. */
import { withoutByteOrderMark } from '../../../protocol/byte-order-mark.js';
import { printable } from '../../../protocol/printable.js';

const IS_SIGSTORE_BUNDLE = 'is a Sigstore bundle, only a part of a proof bundle: cosign verifies it';
const IS_LINE = 'is a line of an export: attest verify --export checks it, and its member bundle is a bundle';
const IS_OBJECT = 'holds the lines of an export: attest verify --export checks them';
const IS_SUBMISSION_WITH_BUNDLE = 'is a submission: give its member bundle alone';
const IS_SUBMISSION = 'is a submission without a bundle: fetch that with attest bundle ID';
const IS_SUBMITTED = 'is what attest submit printed: fetch the bundle with attest bundle ID';
const IS_LIST = 'is a list: give one bundle';
const IS_TRUST_ROOTS = 'is the trust roots, not a bundle';
const IS_ENVELOPE = 'is a signed envelope, such as the manifest of an export, and not a bundle';
const IS_SET =
  'is a set file, the list of the files of a set, and not a bundle: give both, the set with --set';
const IS_SET_PROOF = 'is a member proof of a set, and not a bundle: it is for the member set_proof of one';
const HAS_LINES = 'holds several documents, one a line (JSONL): give one bundle';

/** Says what a parsed document is; undefined for a bundle, and for what is not known. */
export function describeOtherDocument(json: unknown): string | undefined {
  if (Array.isArray(json)) return IS_LIST;
  if (hasAny(json, 'sigstore_bundle', 'sigstoreBundle')) return undefined;
  if (hasAny(json, 'entries') && hasAny(json, 'head')) return IS_SET;
  if (hasAny(json, 'entry') && hasAny(json, 'head')) return IS_SET_PROOF;
  if (hasAny(json, 'dsseEnvelope')) return IS_SIGSTORE_BUNDLE;
  if (hasAny(json, 'submission')) {
    if (hasAny(json, 'bundle')) return IS_LINE;
    return hasAny(json, 'file') ? IS_SUBMITTED : undefined;
  }
  if (hasAny(json, 'leaf_sha256', 'leafSha256')) {
    return hasAny(json, 'bundle') ? IS_SUBMISSION_WITH_BUNDLE : IS_SUBMISSION;
  }
  if (hasAny(json, 'next_cursor', 'nextCursor')) return IS_LIST;
  if (hasAny(json, 'transparency_logs', 'transparencyLogs', 'dsse_signing_keys')) return IS_TRUST_ROOTS;
  if (hasAny(json, 'payloadType')) return IS_ENVELOPE;
  return describeError(json);
}

/** Says what a text, or its UTF-8 bytes, is that is not one JSON document; undefined if it is not known. */
export function describeLines(input: string | Uint8Array): string | undefined {
  const text = typeof input === 'string' ? withoutByteOrderMark(input) : new TextDecoder().decode(input);
  const lines = text.split('\n', 3).filter((line) => line.trim() !== '');
  const documents = lines.slice(0, 2).map(parseObject);
  if (documents.length < 2 || documents.includes(undefined)) return undefined;
  return documents.every((one) => hasAny(one, 'submission') && hasAny(one, 'bundle')) ? IS_OBJECT : HAS_LINES;
}

function describeError(json: unknown): string | undefined {
  const error = hasAny(json, 'error') ? (json as { error: unknown }).error : undefined;
  const code = hasAny(error, 'code') ? (error as { code: unknown }).code : undefined;
  if (typeof code !== 'string') return undefined;
  return `is an error that the service answered, ${printable(code.slice(0, 64))}, and not a bundle`;
}

function parseObject(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function hasAny(value: unknown, ...names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.some((name) => Object.hasOwn(value, name));
}
