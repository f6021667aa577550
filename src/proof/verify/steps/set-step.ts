/** The part of step 2 that takes a set: what was attested is its head, and the artifact is an entry. */
import type { Pieces } from '../../set/lines.js';
import type { SetSummary } from '../../set/read-set.js';
import { readSetProof } from '../../set/set-proof.js';
import {
  checkOfError,
  type ExpectedMember,
  type SetVerification,
  verifyMember,
  verifySet,
  verifySummary,
} from '../../set/verify-set.js';
import type { ParsedBundle } from '../read/parsed-bundle.js';
import { type Check, failed, missing, notChecked } from '../report.js';
import { type Asked, artifactDigests, SHA256 } from './statement-step.js';

/** The set that the artifact is in. Without `set` and `setProof` it is the bundle's own `set_proof`, if it has one. */
export type SetAsked = {
  /** A set file, or one that was read to its end; a set that was read takes no artifact. */
  readonly set?: Pieces | Uint8Array | SetSummary | undefined;
  /** A member proof: JSON text, UTF-8 bytes or parsed JSON. */
  readonly setProof?: unknown;
  /** The path that the artifact must have in the set; any by default. */
  readonly memberPath?: string | undefined;
};

/** Whether a set is involved in the verification. */
export function isOfSet({ setProof: own }: ParsedBundle, { set, setProof }: SetAsked): boolean {
  return [own, set, setProof].some((evidence) => evidence !== undefined);
}

/** The checks, what they prove, and JSON pointers to members of the bundle that nothing is claimed from. */
type SetFindings = SetVerification & { readonly ignored: readonly string[] };

/**
 * Checks the set against the attested SHA-256 (lower-case hex), which is undefined of a statement that cannot be read: then
 * there is nothing to compare with. Throws what a stream of the set throws.
 */
export async function checkSet(
  parsed: ParsedBundle,
  attestedSha256: string | undefined,
  asked: Asked & SetAsked,
): Promise<SetFindings> {
  if (attestedSha256 === undefined || !isOfSet(parsed, asked)) return { checks: [], ignored: [] };
  const digests = artifactDigests(asked);
  if (new Set(digests).size > 1) {
    return { checks: [failed('set.member', 'artifact and artifactSha256 are not of one file')], ignored: [] };
  }
  const isHead = digests[0] === attestedSha256;
  const expected = {
    sha256: isHead ? undefined : digests.find((digest) => SHA256.test(digest)),
    bytes: asked.artifact?.length,
    path: asked.memberPath,
  };
  const { set, setProof } = asked;
  if (set === undefined && setProof === undefined) {
    const { ignored, ...found } = checkProof(parsed.setProof, attestedSha256, expected, isHead);
    return { ...found, ignored: ignored.map((path) => `/set_proof${path}`) };
  }
  const { checks, ...found } =
    set === undefined
      ? checkProof(setProof, attestedSha256, expected, isHead)
      : await checkFile(set, attestedSha256, expected);
  if (parsed.setProof === undefined) return { checks, ...found, ignored: [] };
  const other = notChecked('set.other_proof', 'set_proof of the bundle is not checked: another was given');
  return { checks: [...checks, other], ...found, ignored: ['/set_proof'] };
}

function checkProof(
  input: unknown,
  attestedSha256: string,
  expected: ExpectedMember,
  isHead: boolean,
): SetFindings {
  try {
    const proof = readSetProof(input);
    const { checks, set } = verifyMember(proof, attestedSha256, expected);
    const { ignored } = proof;
    if (!isHead) return { checks, ...(set && { set }), ignored };
    const others = checks.filter(({ code }) => code !== 'set.member');
    return { checks: [...others, IS_HEAD], set: { head: proof.head }, ignored };
  } catch (error) {
    return { checks: [checkOfError(error, attestedSha256)], ignored: [] };
  }
}

const IS_HEAD: Check = notChecked('set.member', 'the artifact is the head of the set, not one of its files');

async function checkFile(
  set: NonNullable<SetAsked['set']>,
  attestedSha256: string,
  expected: ExpectedMember,
): Promise<SetVerification> {
  if (!('headSha256' in set)) {
    return verifySet(set instanceof Uint8Array ? [set] : set, attestedSha256, expected);
  }
  const { checks, ...found } = verifySummary(set, attestedSha256);
  const isMember = expected.sha256 !== undefined || expected.path !== undefined;
  const member = isMember
    ? missing('set.member', 'the entries of the set were not given, only what was read of it')
    : notChecked('set.member', 'no file was given to look for in the set');
  return { checks: [...checks, member], ...found };
}
