/**
 * Verification of a proof bundle: eight named steps, each reported, none skipped. Pure: what to trust, what time it is
 * and what the bundle is about all come in; the bundle is believed in nothing.
 */
import type { EnvironmentName } from '../../protocol/environment.js';
import type { StatementFields } from '../statement/statement.js';
import { checkCheckpoints, checkInclusion, checkLogEnd } from './log-steps.js';
import type { ParsedBundle } from './parsed-bundle.js';
import { checkPolicies, findPolicies, type Policy } from './policy-step.js';
import { readBundle } from './read-bundle.js';
import {
  type Check,
  failed,
  missing,
  notChecked,
  passed,
  STEP_NAMES,
  type Step,
  type StepName,
  step,
} from './report.js';
import { checkLeaf, checkSignature } from './signature-step.js';
import { type Asked, checkStatement, remarkSubmittedAt } from './statement-step.js';
import { summarize } from './summary.js';
import { readTrust, type Trust } from './trust.js';
import { checkWitnesses, type WitnessFinding } from './witness-step.js';

/** What the caller holds, asks and trusts. */
export type VerifyOptions = Omit<Asked, 'environment'> & {
  /** `live` when left out: a test bundle must be asked for. */
  readonly environment?: EnvironmentName;
  /** The trust_roots.json document, parsed. Never taken from a bundle. */
  readonly trustRoots: unknown;
  /** Instead of the policies that the trust roots have for the environment and the time that is proven. */
  readonly policy?: Policy;
  readonly now: Date;
};

/** `could_not_check`: nothing is wrong that could be seen, but something that the verdict needs could not be checked. */
export type Verdict = 'verified' | 'not_verified' | 'could_not_check';

export type Verification = {
  readonly verdict: Verdict;
  /** One sentence for a person. */
  readonly summary: string;
  /** The eight steps, always all, in order. */
  readonly steps: readonly Step[];
  readonly witnesses: readonly WitnessFinding[];
  /** What the statement says. Proven only if the verdict is `verified`. */
  readonly statement?: StatementFields;
  /**
   * The earliest time that a trusted witness vouches for: what it states, with its accuracy. Proven only if the verdict
   * is `verified`.
   */
  readonly existedBy?: Date;
  /** JSON pointers to what the service states in the bundle and the bundle does not prove. */
  readonly unproven: readonly string[];
};

/**
 * Verifies a bundle, given as JSON text, UTF-8 bytes, parsed JSON (REST spelling or ProtoJSON) or as a message. Never
 * throws: whatever is wrong is in the result.
 */
export async function verifyBundle(bundle: unknown, options: VerifyOptions): Promise<Verification> {
  try {
    return await verify(bundle, options);
  } catch {
    return report([], [], {}, 'the verification itself failed');
  }
}

async function verify(bundle: unknown, options: VerifyOptions): Promise<Verification> {
  const read = readBundle(bundle);
  if (read.otherVersion !== undefined) {
    const reason = `a bundle of media type ${read.otherVersion} takes another version of this verifier`;
    return report([step('shape', [missing('shape.other_version', reason)])], [], {}, reason);
  }
  if (read.parsed === undefined) {
    const checks = read.problems.map(({ path, message }) =>
      failed('shape.invalid', `${path || 'the bundle'} ${message}`, path),
    );
    return report([step('shape', checks)], [], {}, 'the bundle cannot be read');
  }
  const roots = readTrust(options.trustRoots);
  if (roots.trust === undefined) {
    const shape = step('shape', [WELL_FORMED]);
    const wrong = roots.problems
      .map(({ path, message }) => `${path || 'the document'} ${message}`)
      .join('; ');
    return report([shape], [], {}, `the trust roots cannot be read: ${wrong}`);
  }
  return verifyParsedBundle(read.parsed, roots.trust, {
    ...options,
    environment: options.environment ?? 'live',
  });
}

const NO_WITNESS: Check = notChecked('witness.none', 'no witness is in the bundle');
const WELL_FORMED: Check = passed('shape.valid', 'the bundle is well-formed');

async function verifyParsedBundle(
  parsed: ParsedBundle,
  trust: Trust,
  options: VerifyOptions & Asked,
): Promise<Verification> {
  const { environment, now } = options;
  const { checks, statement } = checkStatement(parsed, options);
  const inclusion = step('inclusion', checkInclusion(parsed));
  const signed = await checkCheckpoints(parsed, trust, environment);
  const witnesses = await checkWitnesses(parsed, trust, signed.signedSizes);
  const existedBy = earliest(witnesses);
  const checkpoint = step('checkpoint', [...signed.checks, ...checkLogEnd(parsed, trust, existedBy)]);
  const policies = options.policy ? [options.policy] : findPolicies(trust, environment, existedBy);
  const steps = [
    step('shape', [WELL_FORMED]),
    step('statement', [...checks, ...remarkSubmittedAt(statement, existedBy)]),
    step('signature', await checkSignature(parsed, trust, { environment, now, existedBy })),
    step('leaf', checkLeaf(parsed, trust)),
    inclusion,
    checkpoint,
    step('witnesses', witnesses.length > 0 ? witnesses : [NO_WITNESS]),
    step('policy', checkPolicies(policies, parsed, witnesses, [inclusion, checkpoint])),
  ];
  return report(steps, witnesses, { ...(statement && { statement }), ...(existedBy && { existedBy }) });
}

/** Completes the report: steps that were not come to are in it, as not checked, for the reason given. */
function report(
  made: readonly Step[],
  witnesses: readonly WitnessFinding[],
  proven: Pick<Verification, 'statement' | 'existedBy'>,
  reason = '',
): Verification {
  const byName = new Map<StepName, Step>(made.map((one) => [one.name, one]));
  const steps = STEP_NAMES.map(
    (name) => byName.get(name) ?? step(name, [missing(`${name}.not_checked`, reason)]),
  );
  const verdict = verdictOf(steps);
  const unproven = [
    '/submission/submitted_at',
    '/batch/id',
    '/batch/first_index',
    ...witnesses.flatMap(unprovenOf),
  ];
  return {
    verdict,
    summary: summarize(verdict, steps, witnesses, proven),
    steps,
    witnesses,
    ...proven,
    unproven,
  };
}

function verdictOf(steps: readonly Step[]): Verdict {
  if (steps.some(({ status }) => status === 'failed')) return 'not_verified';
  const isOpen = steps.some(({ checks }) => checks.some(({ blocking }) => blocking));
  return isOpen ? 'could_not_check' : 'verified';
}

/** Of a witness that is not checked, all it is said to have said. */
function unprovenOf({ status }: WitnessFinding, i: number): string[] {
  return status === 'not_checked' ? [`/witnesses/${i}`] : [`/witnesses/${i}/landed_at`];
}

function earliest(witnesses: readonly WitnessFinding[]): Date | undefined {
  const times = witnesses.flatMap(({ time }) => (time === undefined ? [] : [time.getTime()]));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
