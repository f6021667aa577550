/** The part of step 1 that reads the Sigstore bundle inside. */
import type { JsonObject } from '@bufbuild/protobuf';
import { printablePointerStep } from '../../../protocol/json-pointer.js';
import type { Problem } from '../../../protocol/problem.js';
import { type SigstoreBundle, sigstoreBundle } from '../../bundle/sigstore-bundle.js';
import { fromBase64, toBase64 } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';
import { HASH_BYTES } from '../../log/merkle.js';
import { IN_TOTO_PAYLOAD_TYPE } from '../../statement/dsse.js';
import { parseLeafRecord, recordKind } from '../../statement/leaf.js';
import type { ParsedCheckpoint, SignatureStamp, SignedEntry } from './parsed-bundle.js';
import { problemOf } from './read-json.js';

const BASE = '/sigstore_bundle';
const ENTRY = '/verificationMaterial/tlogEntries/0';
const HASHES = `${ENTRY}/inclusionProof/hashes`;
const STAMPS = '/verificationMaterial/timestampVerificationData';

/** The maximum number of time stamps over the signature. */
const MAX_STAMPS = 16;

const NOTHING = new Uint8Array();

/** What is wrong with the bundle, and JSON pointers to the members that are ignored. */
export type Findings = { readonly problems: Problem[]; readonly ignored: string[] };

/**
 * Parses the signed entry in the Sigstore bundle, rebuilds the bundle from it, and compares. Ignores members that the
 * format does not have: none is signed or hashed. `isErased`: the statement was erased, so there must be no envelope.
 */
export function readSigstoreBundle(
  json: JsonObject,
  { first, isErased }: { readonly first: ParsedCheckpoint; readonly isErased: boolean },
  { problems, ignored }: Findings,
): SignedEntry | undefined {
  const before = problems.length;
  const wrong = (path: string, message: string) => problems.push({ path: `${BASE}${path}`, message });
  const read = <T>(path: string, parse: (text: string) => T): T | undefined => {
    try {
      return parse(textAt(json, path));
    } catch (error) {
      wrong(path, problemOf(error));
      return undefined;
    }
  };
  const keyHint = read('/verificationMaterial/publicKey/hint', parseKeyHint);
  const logIndex = read(`${ENTRY}/logIndex`, parseIndex);
  const logId = read(`${ENTRY}/logId/keyId`, (text) => fromBase64(text, HASH_BYTES));
  const body = read(`${ENTRY}/canonicalizedBody`, fromBase64);
  const stamps = readStamps(json, wrong, ignored);
  if (isErased && Object.hasOwn(json, 'dsseEnvelope'))
    wrong('/dsseEnvelope', 'is there, but the statement is said to be erased');
  const payload = isErased ? NOTHING : read('/dsseEnvelope/payload', fromBase64);
  const payloadType = isErased ? IN_TOTO_PAYLOAD_TYPE : read('/dsseEnvelope/payloadType', String);
  const signature = isErased
    ? read(`${ENTRY}/canonicalizedBody`, (text) => parseLeafRecord(fromBase64(text)).signature)
    : read('/dsseEnvelope/signatures/0/sig', fromBase64);
  if (!payload || payloadType === undefined || !signature || keyHint === undefined) return undefined;
  if (logIndex === undefined || !logId || !body) return undefined;
  const { size, rootHash, envelope: note, inclusionProof } = first;
  const checkpoint = { size, rootHash, note, inclusionProof };
  const parts = { statement: payload, signature, keyHint, leafRecord: body, logIndex, logId, checkpoint };
  const { dsseEnvelope, ...others } = asWritten(sigstoreBundle(parts), json, payloadType);
  compare(isErased ? others : { ...others, dsseEnvelope }, json, [], (kind, steps, message) => {
    const path = `/${steps.map(printablePointerStep).join('/')}`;
    // Which of the two copies of the path is the right one is not known here.
    if (path.startsWith(HASHES)) wrong(path, 'differs from /checkpoints/0/inclusion_proof');
    else if (kind === 'wrong') wrong(path, message);
    else if (path !== STAMPS) ignored.push(`${BASE}${path}`);
  });
  if (problems.length > before) return undefined;
  return {
    isErased,
    envelope: { payload, payloadType, signature, keyHint, stamps },
    entry: { logIndex, logId, body },
  };
}

type SigstoreForm = { readonly dsseEnvelope: object; readonly verificationMaterial: object };

/**
 * The expected bundle in one of the forms that mean the same: the `keyid` of a signature is empty, left out, or the key
 * hint, as in bundles of three generations. The payload's type is the signed one, and the entry is of the kind that its
 * own body names: whether they are known, later steps say.
 */
function asWritten(expected: SigstoreBundle, json: JsonObject, payloadType: string): SigstoreForm {
  const { dsseEnvelope, verificationMaterial } = expected;
  const { hint } = verificationMaterial.publicKey;
  const actual = findAt(json, '/dsseEnvelope/signatures/0/keyid');
  const keyid = actual === undefined ? {} : { keyid: actual === hint ? hint : '' };
  const signatures = dsseEnvelope.signatures.map(({ sig }) => ({ sig, ...keyid }));
  const tlogEntries = verificationMaterial.tlogEntries.map((entry) => ({
    ...entry,
    kindVersion: recordKind(fromBase64(entry.canonicalizedBody)) ?? entry.kindVersion,
  }));
  return {
    ...expected,
    dsseEnvelope: { ...dsseEnvelope, payloadType, signatures },
    verificationMaterial: { ...verificationMaterial, tlogEntries },
  };
}

/** Time stamps over the signature, which the bundle may have. */
function readStamps(
  json: JsonObject,
  wrong: (path: string, message: string) => unknown,
  ignored: string[],
): SignatureStamp[] {
  const data = findAt(json, STAMPS);
  if (data === undefined) return [];
  const path = `${STAMPS}/rfc3161Timestamps`;
  const list = findAt(json, path) ?? [];
  if (typeof data !== 'object' || !Array.isArray(list) || list.length > MAX_STAMPS) {
    wrong(path, `must be an array of at most ${MAX_STAMPS} time stamps`);
    return [];
  }
  ignored.push(...otherNames(data, 'rfc3161Timestamps').map((name) => `${BASE}${STAMPS}/${name}`));
  return list.flatMap((stamp: unknown, i) => {
    const at = `${path}/${i}/signedTimestamp`;
    try {
      const response = fromBase64(textAt(json, at));
      ignored.push(...otherNames(stamp, 'signedTimestamp').map((name) => `${BASE}${path}/${i}/${name}`));
      return [{ path: `${BASE}${at}`, response }];
    } catch (error) {
      wrong(at, problemOf(error));
      return [];
    }
  });
}

function otherNames(value: unknown, known: string): string[] {
  const names = Object.keys(value ?? {});
  return names.filter((name) => name !== known).map(printablePointerStep);
}

/** Reports every difference. Walks `expected`, so the cost does not depend on the input. */
function compare(
  expected: unknown,
  actual: unknown,
  steps: readonly string[],
  report: (kind: 'wrong' | 'unknown', steps: readonly string[], message: string) => void,
): void {
  if (typeof expected !== 'object' || expected === null) {
    if (expected !== actual) report('wrong', steps, 'is not what the rest of the bundle says');
    return;
  }
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual) !== Array.isArray(expected)) {
    report('wrong', steps, 'is missing or of another type');
    return;
  }
  const members = new Map(Object.entries(actual));
  for (const [name, value] of Object.entries(expected)) {
    compare(value, members.get(name), [...steps, name], report);
    members.delete(name);
  }
  // One more signature, log entry or hash of a path is none that the format has room for.
  const kind = Array.isArray(expected) ? 'wrong' : 'unknown';
  for (const name of members.keys()) report(kind, [...steps, name], 'is not known');
}

/** The text at a JSON pointer made of plain names. */
function textAt(json: JsonObject, pointer: string): string {
  const value = findAt(json, pointer);
  if (typeof value !== 'string') throw new FormatError('must be a text');
  return value;
}

/** The value at a JSON pointer made of plain names, if there is one. Follows own members only. */
function findAt(json: JsonObject, pointer: string): unknown {
  let value: unknown = json;
  for (const name of pointer.split('/').slice(1)) {
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<string, unknown>)[name]
        : undefined;
  }
  return value;
}

function parseKeyHint(text: string): string {
  return toBase64(fromBase64(text, HASH_BYTES));
}

function parseIndex(text: string): number {
  if (!/^(0|[1-9]\d{0,15})$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new FormatError('must be an index below 2^53');
  }
  return Number(text);
}
