import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { judgeFolder } from '../../../proof/set/folder-tally.js';
import type { ParsedBundle } from '../../../proof/verify/read/parsed-bundle.js';
import { readBundle } from '../../../proof/verify/read/read-bundle.js';
import { type Verification, verifyBundle } from '../../../proof/verify/verify.js';
import { type ComparedFolder, compareFolder, readSetFile } from '../folder/compare-folder.js';
import type { GivenFolder } from '../folder/hash-folder.js';
import { type Expectations, verifyOptionsOf } from '../inputs/expectations.js';
import type { Artifact, GivenBundle, GivenSet } from '../inputs/input-files.js';
import type { Roots } from '../trust/use-trust-roots.js';
import { findCryptoProblem } from './web-crypto.js';

/** What is verified, against what. */
type Question = {
  readonly bundle: GivenBundle | undefined;
  readonly given: Artifact | GivenFolder | undefined;
  readonly set: GivenSet | undefined;
  /** Whether a file, folder or set is still being read, which the answer waits for. */
  readonly isReading: boolean;
  readonly roots: Roots | undefined;
  readonly expectations: Expectations;
};

/** The verification, with the bundle's parts if it is well-formed. */
export type Result = {
  readonly verification: Verification;
  readonly parsed: ParsedBundle | undefined;
  readonly bundle: GivenBundle;
  readonly roots: Roots;
  readonly compared?: ComparedFolder | undefined;
};

/** Undefined while there is nothing to verify; `problem` says why it was not possible. */
export type Outcome = { readonly result?: Result; readonly problem?: string } | undefined;

/** Verifies again whenever the question changes. An answer about other files is not shown meanwhile. */
export function useVerification({ bundle, given, set, isReading, roots, expectations }: Question): Outcome {
  const [answer, setAnswer] = useState<{ to: Given; outcome: Outcome }>();
  const comparison = useComparison({ bundle, given, set });
  useEffect(() => {
    if (bundle === undefined || roots === undefined || isReading) return;
    const controller = new AbortController();
    const { signal } = controller;
    verify({ bundle, given, set, roots, expectations, comparison, signal }).then(
      (outcome) => signal.aborted || setAnswer({ to: { bundle, given, set }, outcome }),
    );
    return () => controller.abort();
  }, [bundle, given, set, isReading, roots, expectations, comparison]);
  const { to, outcome } = answer ?? {};
  const isToThese = to?.bundle === bundle && to?.given === given && to?.set === set;
  return isToThese && !isReading && roots !== undefined ? outcome : undefined;
}

type Given = Pick<Question, 'bundle' | 'given' | 'set'>;
type Comparison = Promise<ComparedFolder | undefined>;

/** Compares a folder with its set: once, and not again for each change of what is expected. */
function useComparison({ bundle, given, set }: Given): Comparison | undefined {
  const last = useRef<AbortController | undefined>(undefined);
  return useMemo(() => {
    last.current?.abort();
    if (bundle === undefined || set === undefined || given === undefined || !isFolder(given)) return;
    last.current = new AbortController();
    const comparison = compareFolder({ folder: given, set, bundle }, last.current.signal);
    comparison.catch(() => {});
    return comparison;
  }, [bundle, given, set]);
}

function isFolder(given: Artifact | GivenFolder): given is GivenFolder {
  return 'files' in given;
}

type Complete = Omit<Question, 'isReading'> & {
  readonly bundle: GivenBundle;
  readonly roots: Roots;
  readonly comparison: Comparison | undefined;
  readonly signal: AbortSignal;
};

async function verify(question: Complete): Promise<Outcome> {
  const { bundle, given, set, roots, expectations, comparison, signal } = question;
  const problem = await findCryptoProblem();
  if (problem !== undefined) return { problem };
  try {
    const compared = await comparison;
    const asked = await verifyBundle(bundle.bytes, {
      ...verifyOptionsOf(expectations),
      ...(given !== undefined && !isFolder(given) && { artifactSha256: given.sha256 }),
      ...(set !== undefined && { set: compared?.summary ?? readSetFile(set, signal) }),
      trustRoots: roots.document,
      now: new Date(),
    });
    const verification = compared ? judgeFolder(asked, compared.tally) : given ? asked : withoutFiles(asked);
    return { result: { verification, parsed: readBundle(bundle.bytes).parsed, bundle, roots, compared } };
  } catch (error) {
    return { problem: error instanceof FormatError ? error.message : 'The verification itself failed.' };
  }
}

/** A set alone says nothing of files that the reader has. */
function withoutFiles(verification: Verification): Verification {
  if (verification.verdict !== 'verified') return verification;
  const summary = 'Could not be checked: no folder or file was given to compare with the set.';
  return { ...verification, verdict: 'could_not_check', summary };
}
