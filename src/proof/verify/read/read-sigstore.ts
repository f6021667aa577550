/** The part of step 1 that reads the Sigstore bundle inside. */
import type { JsonObject } from '@bufbuild/protobuf';
import { printablePointerStep } from '../../../protocol/json-pointer.js';
import type { Problem } from '../../../protocol/problem.js';
import { type SigstoreBundle, sigstoreBundle } from '../../bundle/sigstore-bundle.js';
import { fromBase64, toBase64 } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';
import { HASH_BYTES } from '../../log/merkle.js';
import type { ParsedCheckpoint, SignedEntry } from './parsed-bundle.js';
import { problemOf } from './read-json.js';

/** Parses the signed entry in the Sigstore bundle, rebuilds the bundle from it, and compares. */
export function readSigstoreBundle(
  json: JsonObject,
  first: ParsedCheckpoint,
  problems: Problem[],
): SignedEntry | undefined {
  const base = '/sigstore_bundle';
  const before = problems.length;
  const read = <T>(path: string, parse: (text: string) => T): T | undefined => {
    try {
      return parse(textAt(json, path));
    } catch (error) {
      problems.push({ path: `${base}${path}`, message: problemOf(error) });
      return undefined;
    }
  };
  const entryPath = '/verificationMaterial/tlogEntries/0';
  const payload = read('/dsseEnvelope/payload', fromBase64);
  const signature = read('/dsseEnvelope/signatures/0/sig', fromBase64);
  const keyHint = read('/verificationMaterial/publicKey/hint', parseKeyHint);
  const logIndex = read(`${entryPath}/logIndex`, parseIndex);
  const logId = read(`${entryPath}/logId/keyId`, (text) => fromBase64(text, HASH_BYTES));
  const body = read(`${entryPath}/canonicalizedBody`, fromBase64);
  if (!payload || !signature || keyHint === undefined || logIndex === undefined || !logId || !body)
    return undefined;
  const parts = { statement: payload, signature, keyHint, leafRecord: body, logIndex, logId };
  const { size, rootHash, envelope: note, inclusionProof } = first;
  const expected = sigstoreBundle({ ...parts, checkpoint: { size, rootHash, note, inclusionProof } });
  compare(withKeyId(expected, json), json, [], (steps, message) =>
    problems.push({ path: [base, ...steps.map(printablePointerStep)].join('/'), message }),
  );
  if (problems.length > before) return undefined;
  return { envelope: { payload, signature, keyHint }, entry: { logIndex, logId, body } };
}

/** The expected bundle, with the key hint as `keyid` if the actual one has it: old bundles repeat it there. */
function withKeyId(expected: SigstoreBundle, json: JsonObject): object {
  const { dsseEnvelope, verificationMaterial } = expected;
  if (findAt(json, '/dsseEnvelope/signatures/0/keyid') === undefined) return expected;
  const keyid = verificationMaterial.publicKey.hint;
  const signatures = dsseEnvelope.signatures.map((signature) => ({ ...signature, keyid }));
  return { ...expected, dsseEnvelope: { ...dsseEnvelope, signatures } };
}

/** Reports every difference. Walks `expected`, so the cost does not depend on the input. */
function compare(
  expected: unknown,
  actual: unknown,
  steps: readonly string[],
  report: (steps: readonly string[], message: string) => void,
): void {
  if (typeof expected !== 'object' || expected === null) {
    if (expected !== actual) report(steps, 'is not what the rest of the bundle says');
    return;
  }
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual) !== Array.isArray(expected)) {
    report(steps, 'is missing or of another type');
    return;
  }
  const members = new Map(Object.entries(actual));
  for (const [name, value] of Object.entries(expected)) {
    compare(value, members.get(name), [...steps, name], report);
    members.delete(name);
  }
  for (const name of members.keys()) report([...steps, name], 'is not known');
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
