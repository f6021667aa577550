/** Step 1: parses a bundle and checks that it is well-formed and consistent. Verifies nothing. */
import { isMessage, toJson } from '@bufbuild/protobuf';
import {
  type BundleBatch,
  type BundleSubmission,
  type ProofBundle,
  ProofBundleSchema,
} from '../../../../gen/attestation/v1/bundle_pb.js';
import { BATCH_ID, SUBMISSION_ID } from '../../../protocol/ids.js';
import type { Problem } from '../../../protocol/problem.js';
import { BUNDLE_MEDIA_TYPE } from '../../bundle/bundle.js';
import { fromHex, toHex } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';
import { parseExtensibleBody } from '../../log/checkpoint.js';
import { HASH_BYTES } from '../../log/merkle.js';
import { parseNote } from '../../log/note.js';
import { findForeignForm } from './foreign-form.js';
import { parseJsonText, UnreadableTextError } from './json-text.js';
import { describeLines, describeOtherDocument } from './other-document.js';
import type { ParsedBundle, ParsedCheckpoint } from './parsed-bundle.js';
import { problemOf, readMessage } from './read-json.js';
import { type Findings, readSigstoreBundle } from './read-sigstore.js';

/** Maximum length of a bundle's text, in characters. */
export const MAX_BUNDLE_CHARACTERS = 4 * 1024 * 1024;

/** Maximum number of checkpoints, of witnesses and of hashes in a proof. */
const MAX_ITEMS = 64;

type Problems = Problem[];

/** A configured name or a log's origin, in characters that are safe to print. */
const WITNESS_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$/;

/**
 * `uncheckable` says why a bundle takes another version of this verifier, `unreadable` why a text or document is not a
 * bundle at all.
 */
export type ReadBundle =
  | { parsed: ParsedBundle; problems: []; uncheckable?: never; unreadable?: never }
  | { parsed?: never; problems: Problems; uncheckable?: string; unreadable?: string };

/** Parses a bundle given as JSON text, UTF-8 bytes, parsed JSON or a message. Returns its parts or all problems. */
export function readBundle(input: unknown): ReadBundle {
  const { json, problem, unreadable = describeOtherDocument(json) } = jsonOf(input);
  if (unreadable !== undefined) return { problems: [], unreadable };
  if (problem !== undefined) return { problems: [{ path: '', message: problem }] };
  const uncheckable = findForeignForm(json);
  if (uncheckable !== undefined) return { problems: [], uncheckable };
  const { message, problems, ignored } = readMessage(ProofBundleSchema, json, {
    maxItems: MAX_ITEMS,
  });
  if (message === undefined) return { problems };
  const setProof = findSetProof(json);
  const findings = { problems: [], ignored: ignored.filter((path) => path !== '/set_proof') };
  const parts = parseParts(message, findings);
  const parsed = parts && setProof !== undefined ? { ...parts, setProof } : parts;
  return parsed === undefined || findings.problems.length > 0
    ? { problems: findings.problems }
    : { parsed, problems: [] };
}

/** The member that the holder of a set adds to the bundle of its head: the service, and so the message, has none. */
function findSetProof(json: unknown): unknown {
  const isObject = typeof json === 'object' && json !== null && Object.hasOwn(json, 'set_proof');
  return isObject ? (json as { set_proof: unknown }).set_proof : undefined;
}

/** Converts the input to JSON, or returns the problem, or why it is none. */
function jsonOf(input: unknown): { json?: unknown; problem?: string; unreadable?: string } {
  try {
    if (isMessage(input, ProofBundleSchema)) return { json: toJson(ProofBundleSchema, input) };
    if (!isText(input)) return { json: input };
    return { json: parseJsonText(input, MAX_BUNDLE_CHARACTERS) };
  } catch (error) {
    if (!(error instanceof UnreadableTextError) || !isText(input)) return { problem: problemOf(error) };
    return { unreadable: describeLines(input.slice(0, MAX_BUNDLE_CHARACTERS)) ?? error.message };
  }
}

function isText(input: unknown): input is string | Uint8Array {
  return typeof input === 'string' || input instanceof Uint8Array;
}

function parseParts(bundle: ProofBundle, findings: Findings): ParsedBundle | undefined {
  const { problems, ignored } = findings;
  const { submission, batch, sigstoreBundle: sigstore } = bundle;
  const check = (isRight: boolean, path: string, message: string) =>
    isRight || problems.push({ path, message });
  check(bundle.mediaType === BUNDLE_MEDIA_TYPE, '/media_type', `must be ${BUNDLE_MEDIA_TYPE}`);
  check(submission !== undefined, '/submission', 'is missing');
  check(batch !== undefined, '/batch', 'is missing');
  check(sigstore !== undefined, '/sigstore_bundle', 'is missing');
  if (submission !== undefined) checkSubmission(submission, check);
  const checkpoints = bundle.checkpoints.flatMap((_, i) => readCheckpoint(bundle, i, problems) ?? []);
  const [first] = checkpoints;
  check(bundle.checkpoints.length > 0, '/checkpoints', 'is empty');
  if (batch !== undefined && first !== undefined) checkBatch(batch, first, check);
  checkWitnesses(bundle, check);
  if (submission === undefined || batch === undefined || sigstore === undefined || first === undefined)
    return undefined;
  const isErased = submission.statementErasedAt !== undefined;
  const signedEntry = readSigstoreBundle(sigstore, { first, isErased }, findings);
  const { witnesses } = bundle;
  return signedEntry && { submission, batch, checkpoints, witnesses, ignored, ...signedEntry };
}

type Checker = (isRight: boolean, path: string, message: string) => unknown;

function checkSubmission(submission: BundleSubmission, check: Checker): void {
  check(SUBMISSION_ID.test(submission.id), '/submission/id', 'is not a submission id');
  check(submission.environment !== 0, '/submission/environment', 'is missing');
  check(submission.submittedAt !== undefined, '/submission/submitted_at', 'is missing');
  check(
    isSha256(submission.artifactSha256),
    '/submission/artifact_sha256',
    'is not a SHA-256 in lower-case hex',
  );
  check(isSha256(submission.leafSha256), '/submission/leaf_sha256', 'is not a SHA-256 in lower-case hex');
}

function checkBatch(batch: BundleBatch, first: ParsedCheckpoint, check: Checker): void {
  check(BATCH_ID.test(batch.id), '/batch/id', 'is not a batch id');
  check(Number(batch.treeSize) === first.size, '/batch/tree_size', 'is not that of the first checkpoint');
  check(batch.rootHash === toHex(first.rootHash), '/batch/root_hash', 'is not that of the first checkpoint');
  check(
    batch.firstIndex >= 0n && batch.firstIndex < batch.treeSize,
    '/batch/first_index',
    'is not in the batch',
  );
}

function checkWitnesses({ witnesses }: ProofBundle, check: Checker): void {
  const seen = new Set<string>();
  for (const [i, witness] of witnesses.entries()) {
    const path = `/witnesses/${i}`;
    check(WITNESS_NAME.test(witness.name), `${path}/name`, 'is not the name of a witness');
    check(witness.kind !== 0, `${path}/kind`, 'is missing');
    check(witness.landedAt !== undefined, `${path}/landed_at`, 'is missing');
    const place = `${witness.treeSize} ${witness.name}`;
    check(!seen.has(place), `${path}/name`, 'occurs twice for this size');
    seen.add(place);
  }
}

function readCheckpoint(bundle: ProofBundle, i: number, problems: Problems): ParsedCheckpoint | undefined {
  const { note, treeSize, inclusionProof } = bundle.checkpoints[i]!;
  const path = `/checkpoints/${i}`;
  const before = bundle.checkpoints[i - 1];
  if (before !== undefined && before.treeSize >= treeSize) {
    problems.push({ path: `${path}/tree_size`, message: 'is not larger than the one before' });
  }
  try {
    const signed = parseNote(note);
    const checkpoint = parseExtensibleBody(signed.text);
    if (BigInt(checkpoint.size) !== treeSize) throw new FormatError('is of another size');
    if (before !== undefined && !before.note.startsWith(`${checkpoint.origin}\n`)) {
      throw new FormatError('is of another log');
    }
    const hasExtensions = signed.text.split('\n', 5).length > 4;
    return { ...checkpoint, note: signed, envelope: note, hasExtensions, inclusionProof };
  } catch (error) {
    problems.push({ path: `${path}/note`, message: problemOf(error) });
    return undefined;
  }
}

function isSha256(text: string): boolean {
  try {
    return fromHex(text, HASH_BYTES).length === HASH_BYTES;
  } catch {
    return false;
  }
}
