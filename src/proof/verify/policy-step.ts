/**
 * Step 8: the witnesses that must have vouched, have. The policies in force at the time that the bundle's verified
 * evidence proves decide which those are. The bundle names no policy itself: its holder would name the weakest.
 *
 * An attacker who holds a bundle can leave evidence out, and can add later evidence, since anybody can prove a leaf's
 * inclusion in a later checkpoint. The proven time is an upper bound, the earliest of the times that are verified, so
 * both move it later and neither moves it earlier. A bundle of a later time has to meet the policies of that time. An
 * ended policy applies only with evidence from its own time, which cannot be made afterwards; without any proven time
 * the newest policy decides.
 */

import { type EnvironmentName, environmentNumber } from '../../protocol/environment.js';
import { LOG_WITNESS_NAME } from '../bundle/bundle.js';
import type { ParsedBundle } from './parsed-bundle.js';
import { type Check, failed, missing, passed, type Step } from './report.js';
import { isValidAt, type Trust } from './trust.js';
import type { WitnessFinding } from './witness-step.js';

/** Which witnesses must have vouched, by name. */
export type Policy = { readonly required: readonly string[] };

/**
 * The policies of an environment that were in force at the proven time, newest first; the newest alone when none was in
 * force or no time is proven. Of several without an end the newest counts: older trust roots state neither beginning nor
 * end.
 */
export function findPolicies(
  { policies }: Trust,
  environment: EnvironmentName,
  provenTime: Date | undefined,
): readonly Policy[] {
  const own = policies
    .filter((policy) => policy.environment === environmentNumber(environment))
    .sort((a, b) => b.version - a.version);
  const current = own.find(({ validTo }) => validTo === undefined);
  const inForce = own.filter(
    (policy) =>
      provenTime !== undefined &&
      (policy.validTo !== undefined || policy === current) &&
      isValidAt(policy, provenTime),
  );
  return inForce.length > 0 ? inForce : own.slice(0, 1);
}

/**
 * Holds the findings against each policy; one that is met is enough. If none is, the checks are those of the newest that
 * could not be checked without having failed, or else of the newest.
 */
export function checkPolicies(
  policies: readonly Policy[],
  { checkpoints }: ParsedBundle,
  findings: readonly WitnessFinding[],
  logSteps: readonly Step[],
): Check[] {
  const isLogVerified = logSteps.every(({ status }) => status === 'passed');
  const logNames = isLogVerified ? [LOG_WITNESS_NAME, ...checkpoints.map(({ origin }) => origin)] : [];
  const outcomes = policies.map(({ required }) => checkPolicy(required, logNames, findings));
  const has = (status: Check['status']) => (checks: readonly Check[]) =>
    checks.some((check) => check.status === status);
  return (
    outcomes.find((checks) => checks.every(({ status }) => status === 'passed')) ??
    outcomes.find((checks) => has('not_checked')(checks) && !has('failed')(checks)) ??
    outcomes[0] ?? [missing('policy.unknown', 'the trust roots name no policy for this environment')]
  );
}

/** `logNames` is what the log is called in policies, if it has vouched: when steps 5 and 6 have passed. */
function checkPolicy(
  required: readonly string[],
  logNames: readonly string[],
  findings: readonly WitnessFinding[],
): Check[] {
  const checks = [...new Set(required)].map((name) => {
    if (logNames.includes(name)) return passed('policy.met', `${name} has vouched`);
    return checkRequired(
      name,
      findings.filter((finding) => finding.name === name),
    );
  });
  return checks.length > 0 ? checks : [passed('policy.met', 'no witness is required')];
}

function checkRequired(name: string, findings: readonly WitnessFinding[]): Check {
  if (findings.some(({ status }) => status === 'passed')) return passed('policy.met', `${name} has vouched`);
  if (findings.some(({ status }) => status === 'not_checked')) {
    return missing('policy.not_checkable', `the required witness ${name} could not be checked`);
  }
  return failed('policy.missing_witness', `the required witness ${name} has not vouched`);
}
