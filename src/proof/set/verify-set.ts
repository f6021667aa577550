/** Verification of sets and member proofs against the digest that was attested, as checks of a verification's report. */
import { fromHex } from '../bytes/encoding.js';
import { verifyInclusion } from '../log/merkle.js';
import { type Check, failed, missing, notChecked, passed } from '../verify/report.js';
import type { PresentFile } from './compare-files.js';
import type { SetEntry } from './entry.js';
import type { SetHead } from './head.js';
import type { Pieces } from './lines.js';
import { printablePath } from './path.js';
import { readSet, type SetSummary } from './read-set.js';
import { SetError } from './set-error.js';
import type { SetProof } from './set-proof.js';

/** The file that should be in the set; members that are not given are not compared. */
export type ExpectedMember = { readonly [Name in keyof PresentFile]?: PresentFile[Name] | undefined };

/** The checks, and what they prove if all of them passed. */
export type SetVerification = {
  readonly checks: readonly Check[];
  readonly set?: ProvenSet;
};

/**
 * A set, and the entry that the expected file is. Callers show `head.notBefore`: that the log has that checkpoint takes the
 * log and is not checked.
 */
export type ProvenSet = {
  readonly head: SetHead;
  readonly member?: { readonly entry: SetEntry; readonly index: number };
};

/**
 * Verifies a member proof against the attested SHA-256 (lower-case hex): it is that of the head, the entry is included, and
 * the entry is the expected file.
 */
export function verifyMember(
  proof: SetProof,
  attestedSha256: string,
  expected: ExpectedMember,
): SetVerification {
  const { head, headSha256, entry, leaf, index, inclusionProof, ignored } = proof;
  const claim = { leafHash: leaf, index, size: head.entries, root: fromHex(head.root) };
  const inclusion = verifyInclusion(claim, inclusionProof)
    ? passed('set.inclusion', `the entry is in the set of ${countFiles(head.entries)}`)
    : failed('set.inclusion', 'the entry is not proven to be in the set');
  const member =
    entry === undefined
      ? missing('set.member', 'the entry has members that this version does not know')
      : checkMember(entry, expected);
  return {
    checks: [
      passed('set.shape', 'the member proof is well-formed'),
      checkHead(headSha256, attestedSha256),
      inclusion,
      member,
      ...ignored.map(remark),
    ],
    set: { head, ...(entry && { member: { entry, index } }) },
  };
}

/**
 * Verifies a set file against the attested SHA-256 (lower-case hex), in one pass: it is that of the head, and the head that
 * of the entries. With `expected.sha256` or `expected.path` an entry must be that file as well. Throws what the pieces throw.
 */
export async function verifySet(
  pieces: Pieces,
  attestedSha256: string,
  expected: ExpectedMember = {},
): Promise<SetVerification> {
  const { sha256, path } = expected;
  let member: ProvenSet['member'];
  try {
    const { items, finish } = readSet(pieces);
    for await (const { entry, index } of items) {
      if (entry === undefined || member !== undefined) continue;
      const isWanted = path === undefined ? entry.sha256 === sha256 : entry.path === path;
      if (isWanted) member = { entry, index };
    }
    const summary = await finish();
    const { checks, set } = verifySummary(summary, attestedSha256);
    const isMember = sha256 !== undefined || path !== undefined;
    if (!isMember) return { checks: [...checks, WHOLE], set };
    const check = member ? checkMember(member.entry, expected) : noMember(summary);
    return { checks: [...checks, check], set: { ...set, ...(member && { member }) } };
  } catch (error) {
    return { checks: [checkOfError(error, attestedSha256)] };
  }
}

const WHOLE: Check = notChecked('set.member', 'no file was given to look for in the set');

/** The same of a set that was read to its end already, without a member. */
export function verifySummary(
  { head, headSha256, ignored }: SetSummary,
  attestedSha256: string,
): Required<Pick<SetVerification, 'checks' | 'set'>> {
  const checks = [
    passed('set.shape', 'the set is well-formed'),
    checkHead(headSha256, attestedSha256),
    passed('set.inclusion', `the head is that of the ${countFiles(head.entries)}`),
    ...ignored.map(remark),
  ];
  return { checks, set: { head } };
}

/**
 * The check that an error of reading means. Another head than the attested one is wrong whatever its form. Throws any error
 * but SetError.
 */
export function checkOfError(error: unknown, attestedSha256: string): Check {
  if (!(error instanceof SetError)) throw error;
  const { isUnsupported, headSha256 } = error.details;
  if (headSha256 !== undefined && headSha256 !== attestedSha256) return checkHead(headSha256, attestedSha256);
  return isUnsupported ? missing(error.code, error.message) : failed(error.code, error.message);
}

function remark(path: string): Check {
  return notChecked('set.unknown_member', `${path} of the set is not known to this version and is ignored`);
}

/** `1 file`, `2 files`. */
export function countFiles(number: number): string {
  return `${number} file${number === 1 ? '' : 's'}`;
}

function checkHead(headSha256: string, attestedSha256: string): Check {
  return headSha256 === attestedSha256
    ? passed('set.head', 'the head of the set is what was attested')
    : failed('set.head', 'the head of the set is not what was attested');
}

function checkMember(entry: SetEntry, { sha256, bytes, path }: ExpectedMember): Check {
  const name = printablePath(entry.path);
  if (path !== undefined && path !== entry.path) {
    return failed('set.member', `the entry is ${name}, not ${printablePath(path)}`);
  }
  if (sha256 === undefined) return missing('set.member', `no file was given to compare with ${name}`);
  if (sha256 !== entry.sha256) return failed('set.member', `the file is not ${name} of the set`);
  return bytes === undefined || bytes === entry.bytes
    ? passed('set.member', `the file is ${name} of the set`)
    : failed('set.member', `the set has another length of ${name} than the file`);
}

/** A file that is not among the entries may be one that is withheld. */
function noMember({ withheld }: SetSummary): Check {
  return withheld === 0
    ? failed('set.member', 'the file is not in the set')
    : missing('set.member', `the file is not in the set, unless it is one of the ${withheld} withheld`);
}
