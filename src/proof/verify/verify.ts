/**
 * Verification of a proof bundle in eight named steps, each of which is reported. Pure: trust roots, time, artifact and
 * nodes of chains are parameters, and nothing in the bundle is trusted.
 */
import type { EnvironmentName } from '../../protocol/environment.js';
import type { ProvenSet } from '../set/verify-set.js';
import type { Statement } from '../statement/statement.js';
import type { EvidenceSources, Finding } from './evidence/evidence.js';
import { createMemo } from './memo.js';
import { type ReadBundle, readBundle } from './read/read-bundle.js';
import { failed, missing, STEP_NAMES, type Step, type StepName, step } from './report.js';
import type { CheckpointChecks } from './steps/log-steps.js';
import type { Policy, WitnessDemands } from './steps/policy-step.js';
import type { SetAsked } from './steps/set-step.js';
import type { Asked } from './steps/statement-step.js';
import type { WitnessFinding } from './steps/witness-step.js';
import { summarize } from './summary.js';
import { readTrust } from './trust.js';
import { type Findings, type Question, verifyParsedBundle, WELL_FORMED } from './verify-parsed.js';

/** The trust of a verification of bundles. */
export type TrustOptions = EvidenceSources &
  WitnessDemands & {
    /** The expected environment; `live` by default, so that a test bundle needs a choice. */
    readonly environment?: EnvironmentName;
    /** The document trust_roots.json, parsed or as JSON text or UTF-8 bytes. Never taken from a bundle. */
    readonly trustRoots: unknown;
    /** Replaces the policies of the trust roots for the environment and the proven time. */
    readonly policy?: Policy;
    readonly now: Date;
  };

/** The trust and expectations of one verification. */
export type VerifyOptions = Omit<Asked, 'environment'> &
  SetAsked &
  TrustOptions & {
    /** A COSE receipt of the same submission, to be checked as well. */
    readonly receipt?: Uint8Array | undefined;
  };

/** `could_not_check`: no check failed, but a check that the verdict needs was not possible. */
export type Verdict = 'verified' | 'not_verified' | 'could_not_check';

export type Verification = {
  readonly verdict: Verdict;
  /** One sentence for people. */
  readonly summary: string;
  /** All eight steps, in order. */
  readonly steps: readonly Step[];
  readonly witnesses: readonly WitnessFinding[];
  /** Fields of the statement. Proven only if the verdict is `verified`. */
  readonly statement?: Statement;
  /** The metadata, if it was given and is what was attested. Proven only if the verdict is `verified`. */
  readonly metadata?: unknown;
  /**
   * The set that was attested, and the artifact's entry in it, if a set is involved. Proven only if the verdict is `verified`,
   * but not that the log has the checkpoint `not_before`.
   */
  readonly set?: ProvenSet;
  /**
   * The earliest time that a trusted witness attests, its accuracy included. Proven only if the verdict is `verified`.
   */
  readonly existedBy?: Date;
  /** JSON pointers to members of the bundle that state something the bundle does not prove. */
  readonly unproven: readonly string[];
};

/**
 * Verifies a bundle, given as JSON text, UTF-8 bytes, parsed JSON (of REST or ProtoJSON) or a message. Never throws:
 * the result lists every problem.
 */
export async function verifyBundle(bundle: unknown, options: VerifyOptions): Promise<Verification> {
  try {
    return await createBundleVerifier(options)(readBundle(bundle), options);
  } catch {
    return report({ steps: [] }, 'the verification itself failed');
  }
}

/** Verifies a bundle as read, about what is expected of it. Throws only what reading `asked` throws. */
type BundleVerifier = (
  read: ReadBundle,
  asked: Omit<Asked, 'environment'> & SetAsked & Pick<VerifyOptions, 'receipt'>,
) => Promise<Verification>;

/**
 * Creates a verifier of many bundles against the same trust roots. It reads these once, and remembers the results of the
 * last checkpoints and witnesses: the bundles of a batch share them.
 */
export function createBundleVerifier(options: TrustOptions): BundleVerifier {
  const { environment = 'live', now, policy, bitcoinHeaders, evmRpc } = options;
  const { minWitnesses, requireWitnesses } = options;
  const demands: WitnessDemands = { minWitnesses, requireWitnesses };
  const sources: EvidenceSources = { ...(bitcoinHeaders && { bitcoinHeaders }), ...(evmRpc && { evmRpc }) };
  const roots = readTrust(options.trustRoots);
  const memos = {
    checkpoints: createMemo<CheckpointChecks>(MAX_MEMO),
    witnesses: createMemo<Finding>(MAX_MEMO),
  };
  return (read, asked) =>
    verify(read, roots, { ...memos, ...demands, ...asked, environment, now, policy, sources });
}

/** In characters of keys. A time stamp and its checkpoint have about 10,000. */
const MAX_MEMO = 4 * 1024 * 1024;

async function verify(
  read: ReadBundle,
  roots: ReturnType<typeof readTrust>,
  options: Question,
): Promise<Verification> {
  if (read.uncheckable !== undefined) {
    const shape = step('shape', [missing('shape.other_version', read.uncheckable)]);
    return report({ steps: [shape] }, read.uncheckable);
  }
  if (read.unreadable !== undefined) {
    const shape = step('shape', [missing('shape.unreadable', `the bundle ${read.unreadable}`)]);
    return report({ steps: [shape] }, 'the bundle cannot be read');
  }
  if (read.parsed === undefined) {
    const checks = read.problems.map(({ path, message }) =>
      failed('shape.invalid', `${path || 'the bundle'} ${message}`, path),
    );
    return report({ steps: [step('shape', checks)] }, 'the bundle cannot be read');
  }
  if (roots.trust === undefined) {
    const shape = step('shape', [WELL_FORMED]);
    const wrong = roots.problems
      .map(({ path, message }) => `${path || 'the document'} ${message}`)
      .join('; ');
    return report({ steps: [shape] }, `the trust roots cannot be read: ${wrong}`);
  }
  return report(await verifyParsedBundle(read.parsed, roots.trust, options));
}

/** Completes the report: steps that were not reached are `not_checked` for the given reason. */
function report(found: Partial<Findings> & Pick<Findings, 'steps'>, reason = ''): Verification {
  const { witnesses = [], stamps = [], ignored = [], statement, metadata, set, existedBy } = found;
  const byName = new Map<StepName, Step>(found.steps.map((one) => [one.name, one]));
  const steps = STEP_NAMES.map(
    (name) => byName.get(name) ?? step(name, [missing(`${name}.not_checked`, reason)]),
  );
  const verdict = verdictOf(steps);
  const proven = {
    ...(statement && { statement }),
    ...(metadata !== undefined && { metadata }),
    ...(set && { set }),
    ...(existedBy && { existedBy }),
  };
  const unproven = [
    '/submission/submitted_at',
    '/batch/id',
    '/batch/first_index',
    ...witnesses.flatMap(unprovenOf),
    ...stamps.filter(({ time }) => time === undefined).map(({ path }) => path),
    ...ignored,
  ];
  const summary = summarize(verdict, steps, [...witnesses, ...stamps], proven);
  return { verdict, summary, steps, witnesses, ...proven, unproven };
}

function verdictOf(steps: readonly Step[]): Verdict {
  if (steps.some(({ status }) => status === 'failed')) return 'not_verified';
  const isOpen = steps.some(({ checks }) => checks.some(({ blocking }) => blocking));
  return isOpen ? 'could_not_check' : 'verified';
}

/** Unproven members of one witness: all of them if it was not checked. */
function unprovenOf({ status }: WitnessFinding, i: number): string[] {
  return status === 'not_checked' ? [`/witnesses/${i}`] : [`/witnesses/${i}/landed_at`];
}
