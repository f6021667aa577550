/** What one bundle of many proves, without the file that it is about. */
import { existsSync } from 'node:fs';
import { join, sep } from 'node:path';
import { type ReadBundle, readBundle } from '../../proof/verify/read/read-bundle.js';
import type { Step } from '../../proof/verify/report.js';
import { SHA256 } from '../../proof/verify/steps/statement-step.js';
import {
  createBundleVerifier,
  type TrustOptions,
  type Verdict,
  type Verification,
} from '../../proof/verify/verify.js';
import { type BundleFile, readBundleBytes } from './find-bundles.js';

/** The trust to verify many bundles against, and the project that must have attested all of them. */
export type BundleOptions = TrustOptions & { readonly project?: string | undefined };

/** A bundle that was verified, or not; paths have `/`. */
export type JudgedBundle = {
  /** Its path in the folder of bundles. */
  readonly bundle: string;
  readonly verdict: Verdict;
  /** SHA-256 of its file in lower-case hex: proven if the verdict is `verified`, else what the bundle claims. */
  readonly sha256?: string | undefined;
  /** The paths that its file may have: that in its member proof, and those of the bundle's name. The first is for people. */
  readonly names: readonly string[];
  /** Why it is not verified; empty if it is. */
  readonly reason: string;
  /** The steps, if it is not verified and could be read. */
  readonly steps?: readonly Step[];
};

/** Facts that verified bundles prove. */
export type ProvenFacts = { readonly project: string; readonly existedBy: Date | undefined };

/** A judged bundle and what it proves. `isOther`: the file is none of our documents, and perhaps an artifact itself. */
type Judgement = {
  readonly judged: JudgedBundle;
  readonly proven?: ProvenFacts;
  readonly isOther: boolean;
};

const MAX_REASON_LENGTH = 500;

/** What bundles of every version have in them. */
const MEDIA_TYPE = 'application/vnd.attestation-service.bundle.';

/**
 * Creates the judge of the bundles in a folder, about the files of the folder `of`. It reads one bundle at a time, and never
 * throws.
 */
export function createBundleJudge(
  folder: string,
  of: string,
  { project, ...options }: BundleOptions,
): (file: BundleFile) => Promise<Judgement> {
  const verify = createBundleVerifier(options);
  return async ({ path, problem }) => {
    const name = path.replace(/(?:\.bundle)?\.json$/, '');
    const names = namesIn(of, name);
    const unread = (reason: string, isOther: boolean): Judgement => ({
      judged: { bundle: path, verdict: 'could_not_check', names, reason },
      isOther,
    });
    const isNamed = () => path.endsWith('.bundle.json') && existsSync(join(folder, name));
    if (problem !== undefined) return unread(`the folder ${problem}`, false);
    const file = readBundleBytes(join(folder, path));
    if ('problem' in file) return unread(`the bundle ${file.problem}`, !isNamed());
    try {
      const read = readBundle(file.bytes);
      const asked = { artifactSha256: claimedDigest(read), project };
      const verification = await verify(read, asked);
      const isOther =
        read.parsed === undefined && !isNamed() && !Buffer.from(file.bytes).includes(MEDIA_TYPE);
      return { ...judge(verification, asked.artifactSha256, path, names), isOther };
    } catch {
      return unread('the verification itself failed', !isNamed());
    }
  };
}

/**
 * The paths in a folder (absolute) that a file recorded under this name may have: a name that begins as the folder's path
 * ends is one from where the files were submitted, as `build/art/a` of `a` in `/home/me/build/art`.
 */
function namesIn(folder: string, name: string): string[] {
  const segments = name.split('/');
  const end = folder.split(sep);
  const inner = segments.flatMap((_, i) =>
    i > 0 && segments.slice(0, i).join('/') === end.slice(-i).join('/') ? segments.slice(i).join('/') : [],
  );
  return [...inner, name];
}

/** The digest that the bundle is asked about: of the entry in its member proof, or what it says was attested. */
function claimedDigest({ parsed }: ReadBundle): string | undefined {
  if (parsed === undefined || parsed.setProof === undefined) return parsed?.submission.artifactSha256;
  const { entry } = (parsed.setProof ?? {}) as { entry?: { sha256?: unknown } | null };
  const digest = entry?.sha256;
  return typeof digest === 'string' && SHA256.test(digest) ? digest : undefined;
}

function judge(
  verification: Verification,
  sha256: string | undefined,
  bundle: string,
  names: readonly string[],
): Omit<Judgement, 'isOther'> {
  const { verdict, steps, statement, set, existedBy } = verification;
  const member = set?.member?.entry;
  const recorded = { bundle, verdict, sha256, names: member ? [member.path, ...names] : names };
  if (verdict !== 'verified' || statement === undefined) {
    return { judged: { ...recorded, reason: reasonOf(verification), steps } };
  }
  return { judged: { ...recorded, reason: '' }, proven: { project: statement.project, existedBy } };
}

/** The message of the first step that decides; of what could not be checked also those of its witnesses, as what is lacking. */
function reasonOf({ verdict, steps, witnesses }: Verification): string {
  const status = verdict === 'not_verified' ? 'failed' : 'not_checked';
  const first = steps.find((step) => step.status === status);
  const lacking = status === 'failed' ? [] : witnesses.filter((witness) => witness.status === status);
  return [first, ...lacking]
    .flatMap((found) => found?.message ?? [])
    .join('; ')
    .slice(0, MAX_REASON_LENGTH);
}
