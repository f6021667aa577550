/**
 * Step 8: all witnesses that the policy requires have signed. The policies in force at the proven time apply. The
 * bundle cannot choose its policy: its holder would choose the weakest.
 *
 * An attacker who holds a bundle can remove evidence, and can add later evidence, since anybody can prove a leaf's
 * inclusion in a later checkpoint. The proven time is an upper bound, the earliest of the verified times, so both can
 * only move it later. A bundle of a later time must meet the policies of that time. An ended policy applies only with
 * evidence from its own time, which cannot be created afterwards; without a proven time the newest policy applies.
 */

import { type EnvironmentName, environmentNumber } from '../../../protocol/environment.js';
import { LOG_WITNESS_NAME } from '../../bundle/bundle.js';
import { instantText } from '../instant.js';
import type { ParsedBundle } from '../read/parsed-bundle.js';
import { type Check, failed, missing, passed, type Step } from '../report.js';
import { isValidAt, type Trust, type TrustedQuorum } from '../trust.js';
import type { WitnessFinding } from './witness-step.js';

/** Names of the required witnesses, and quorums that must be met beside them. */
export type Policy = { readonly required: readonly string[]; readonly quorums?: readonly TrustedQuorum[] };

/** A policy of the trust roots, or a caller's; one with an end has been replaced since. */
type KnownPolicy = Policy & { readonly version?: number; readonly validTo?: Date };

/** What the caller wants of the witnesses beside a policy. */
export type WitnessDemands = {
  /** How many witnesses, beside the log itself, must be verified. */
  readonly minWitnesses?: number | undefined;
  /** Names of witnesses that must be verified; `log` and the log's origin are the log's. */
  readonly requireWitnesses?: readonly string[] | undefined;
};

/**
 * Policies of an environment in force at the proven time, newest first; only the newest if none was in force or no time
 * is proven. Of several without an end only the newest counts: older trust roots state neither beginning nor end.
 */
export function findPolicies(
  { policies }: Trust,
  environment: EnvironmentName,
  provenTime: Date | undefined,
): readonly KnownPolicy[] {
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
 * Checks the findings against each policy; meeting one is enough, and a former one is named. Otherwise returns the checks of the newest policy
 * that did not fail but could not be checked, or else of the newest.
 */
export function checkPolicies(
  policies: readonly KnownPolicy[],
  { checkpoints }: ParsedBundle,
  findings: readonly WitnessFinding[],
  logSteps: readonly Step[],
): Check[] {
  const names = [LOG_WITNESS_NAME, ...checkpoints.map(({ origin }) => origin)];
  const log = { names, status: statusOfLog(logSteps) };
  const outcomes = policies.map((policy) => checkPolicy(policy, log, findings));
  const has = (status: Check['status']) => (checks: readonly Check[]) =>
    checks.some((check) => check.status === status);
  const met = outcomes.findIndex((checks) => checks.every(({ status }) => status === 'passed'));
  return (
    outcomes[met]?.concat(nameFormer(policies[met])) ??
    outcomes.find((checks) => has('not_checked')(checks) && !has('failed')(checks)) ??
    outcomes[0] ?? [missing('policy.unknown', 'the trust roots name no policy for this environment')]
  );
}

function nameFormer({ version, validTo }: KnownPolicy = { required: [] }): Check[] {
  if (validTo === undefined) return [];
  return [passed('policy.former', `by policy ${version}, which was in force until ${instantText(validTo)}`)];
}

/** Checks the caller's demands: only witnesses that are verified meet them. */
export function checkDemands(
  { minWitnesses = 0, requireWitnesses = [] }: WitnessDemands,
  { checkpoints }: ParsedBundle,
  findings: readonly WitnessFinding[],
  logSteps: readonly Step[],
): Check[] {
  const verified = findings.filter(({ status }) => status === 'passed');
  const logNames = [LOG_WITNESS_NAME, ...checkpoints.map(({ origin }) => origin)];
  const names = new Set(verified.map(({ name }) => name).filter((name) => !logNames.includes(name)));
  const isThere = (name: string) =>
    logNames.includes(name) ? statusOfLog(logSteps) === 'passed' : names.has(name);
  const count = `${names.size} of at least ${minWitnesses} witnesses beside the log`;
  return [
    ...(minWitnesses === 0 ? [] : [demand(names.size >= minWitnesses, `${count} are verified`)]),
    ...[...new Set(requireWitnesses)].map((name) =>
      isThere(name)
        ? demand(true, `the witness ${name} is verified, as you require`)
        : demand(false, `the witness ${name}, which you require, is not verified`),
    ),
  ];
}

function demand(isMet: boolean, message: string): Check {
  return isMet ? passed('policy.demand_met', message) : failed('policy.demand_not_met', message);
}

/** The log's names in policies, and the status of steps 5 and 6. */
type LogVouching = { readonly names: readonly string[]; readonly status: Check['status'] };

function statusOfLog(steps: readonly Step[]): Check['status'] {
  if (steps.every(({ status }) => status === 'passed')) return 'passed';
  return steps.some(({ status }) => status === 'failed') ? 'failed' : 'not_checked';
}

function checkPolicy(
  { required, quorums = [] }: Policy,
  log: LogVouching,
  findings: readonly WitnessFinding[],
): Check[] {
  const check = (name: string) =>
    checkRequired(name, [
      ...(log.names.includes(name) && log.status !== 'failed' ? [log] : []),
      ...findings.filter((finding) => finding.name === name),
    ]);
  const checks = [
    ...[...new Set(required)].map(check),
    ...quorums.map(({ threshold, members }) => checkQuorum(threshold, [...new Set(members)], check)),
  ];
  return checks.length > 0 ? checks : [passed('policy.met', 'no witness is required')];
}

function checkRequired(name: string, findings: readonly Pick<Check, 'status'>[]): Check {
  if (findings.some(({ status }) => status === 'passed')) return passed('policy.met', `${name} has vouched`);
  if (findings.some(({ status }) => status === 'not_checked')) {
    return missing('policy.not_checkable', `the required witness ${name} could not be checked`);
  }
  return failed('policy.missing_witness', `the required witness ${name} has not vouched`);
}

function checkQuorum(threshold: number, members: readonly string[], check: (name: string) => Check): Check {
  const having = (status: Check['status']) => members.filter((name) => check(name).status === status);
  const [met, open] = [having('passed'), having('not_checked')];
  const quorum = `${threshold} of ${members.join(', ')}`;
  if (met.length >= threshold) return passed('policy.met', `${met.join(' and ')} have vouched, of ${quorum}`);
  if (met.length + open.length >= threshold) {
    return missing('policy.not_checkable', `too few of ${quorum} could be checked`);
  }
  const vouched = met.length === 0 ? 'none' : met.join(' and ');
  return failed('policy.missing_witness', `${quorum} must vouch, and ${vouched} did`);
}
