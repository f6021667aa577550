/** Step 8: the witnesses that must have vouched, have. */

import { type EnvironmentName, environmentNumber } from '../../environment.js';
import { LOG_WITNESS_NAME } from '../bundle.js';
import type { BundleFacts } from './facts.js';
import { type Check, failed, missing, passed, type Step } from './report.js';
import type { Trust } from './trust.js';
import type { WitnessFinding } from './witness-step.js';

/** Which witnesses must have vouched, by name. */
export type Policy = { readonly required: readonly string[] };

/** The newest policy that the trust roots have for an environment. */
export function findPolicy(trust: Trust, environment: EnvironmentName): Policy | undefined {
  const candidates = trust.policies.filter((policy) => policy.environment === environmentNumber(environment));
  return candidates.sort((a, b) => b.version - a.version)[0];
}

/** Holds the findings against the policy. The log itself vouches when steps 5 and 6 have passed. */
export function checkPolicy(
  policy: Policy | undefined,
  { checkpoints }: BundleFacts,
  findings: readonly WitnessFinding[],
  logSteps: readonly Step[],
): Check[] {
  if (policy === undefined) {
    return [missing('policy.unknown', 'the trust roots name no policy for this environment')];
  }
  const isLogVerified = logSteps.every(({ status }) => status === 'passed');
  const logNames = [LOG_WITNESS_NAME, ...checkpoints.map(({ origin }) => origin)];
  const checks = [...new Set(policy.required)].map((name) => {
    if (logNames.includes(name) && isLogVerified) return passed('policy.met', `${name} has vouched`);
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
