import { useEffect, useState } from 'preact/hooks';
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { ParsedBundle } from '../../../proof/verify/read/parsed-bundle.js';
import { readBundle } from '../../../proof/verify/read/read-bundle.js';
import { type Verification, verifyBundle } from '../../../proof/verify/verify.js';
import { type Expectations, verifyOptionsOf } from '../inputs/expectations.js';
import type { GivenBundle } from '../inputs/input-files.js';
import type { Roots } from '../trust/use-trust-roots.js';
import { findCryptoProblem } from './web-crypto.js';

/** What is verified, against what. `artifactSha256` is undefined if no file was given. */
type Question = {
  readonly bundle: GivenBundle | undefined;
  readonly artifactSha256: string | undefined;
  readonly roots: Roots | undefined;
  readonly expectations: Expectations;
};

/** The verification, with the bundle's parts if it is well-formed. */
export type Result = {
  readonly verification: Verification;
  readonly parsed: ParsedBundle | undefined;
  readonly bundle: GivenBundle;
  readonly roots: Roots;
};

/** Undefined while there is nothing to verify; `problem` says why it was not possible. */
export type Outcome = { readonly result?: Result; readonly problem?: string } | undefined;

/** Verifies again whenever the question changes. */
export function useVerification({ bundle, artifactSha256, roots, expectations }: Question): Outcome {
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() => {
    let isCurrent = true;
    if (bundle === undefined || roots === undefined) {
      setOutcome(undefined);
      return;
    }
    verify({ bundle, roots, artifactSha256, expectations }).then((found) => isCurrent && setOutcome(found));
    return () => {
      isCurrent = false;
    };
  }, [bundle, artifactSha256, roots, expectations]);
  return outcome;
}

type Complete = Question & { readonly bundle: GivenBundle; readonly roots: Roots };

async function verify({ bundle, artifactSha256, roots, expectations }: Complete): Promise<Outcome> {
  const problem = await findCryptoProblem();
  if (problem !== undefined) return { problem };
  try {
    const verification = await verifyBundle(bundle.bytes, {
      ...verifyOptionsOf(expectations),
      artifactSha256,
      trustRoots: roots.document,
      now: new Date(),
    });
    return { result: { verification, parsed: readBundle(bundle.bytes).parsed, bundle, roots } };
  } catch (error) {
    return { problem: error instanceof FormatError ? error.message : 'The verification itself failed.' };
  }
}
