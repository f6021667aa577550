import type { CreateTrustRuleRequest } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { findKnownIssuer, namesOwner } from '../../../protocol/known-issuers.js';
import type { Problem } from '../../../protocol/problem.js';
import { storableText } from '../../database/storable-text.js';
import { invalidRequest } from '../../json/problems.js';
import { mergeLimits, validateScopes } from '../api-key-rules.js';
import { DEFAULT_LIMITS } from '../store/api-keys.js';
import type { NewTrustRule } from '../store/trust-rules.js';
import { discoveryUrl } from './issuer-keys.js';

/** The dependencies of checking a rule. */
export type TrustRuleInputDeps = {
  /** Every scope that a key can be granted. */
  scopes: readonly string[];
  /** Why the service may not call this address; undefined if it may. */
  findUrlProblem: (issuer: string, url: string) => Promise<string | undefined>;
};

/** The claims that every rule checks by itself. */
export const CHECKED_CLAIMS = ['aud', 'exp', 'iat', 'iss', 'jti', 'nbf'];
const DEFAULT_SCOPES = ['attestations:read', 'attestations:write'];

/** Throws `request.invalid` if an issuer is no address, or one that the service may not call. */
export async function assertIssuerCallable(
  { findUrlProblem }: TrustRuleInputDeps,
  issuer: string,
): Promise<void> {
  const path = '/issuer';
  if (!URL.canParse(issuer) || /[?#]/.test(issuer))
    throw invalidRequest([{ path, message: 'must be an https address without query and fragment' }]);
  const problem = await findUrlProblem(issuer, discoveryUrl(issuer));
  if (problem !== undefined) throw invalidRequest([{ path, message: `cannot be called: ${problem}` }]);
}

/** Returns the columns of a new rule. Throws `request.invalid` with every problem of its scopes, or of its claims. */
export function readTrustRule(
  deps: Pick<TrustRuleInputDeps, 'scopes'>,
  request: CreateTrustRuleRequest,
): Omit<NewTrustRule, 'id' | 'projectId' | 'createdBy'> {
  const { environment, issuer, audience, conditions, recordedClaims } = request;
  const scopes = validateScopes(request.scopes, deps.scopes);
  const texts = [issuer, audience, ...recordedClaims];
  const problems = [
    ...conditionProblems(conditions, CHECKED_CLAIMS),
    ...ownerProblems(issuer, conditions),
    ...texts.filter((text) => storableText(text) !== text).map(() => ({ path: '', message: 'has U+0000' })),
  ];
  if (problems.length > 0) throw invalidRequest(problems);
  const byDefault = findKnownIssuer(issuer)?.recordedClaims ?? Object.keys(conditions);
  return {
    environment,
    issuer,
    audience,
    conditions,
    scopes: request.scopes.length === 0 ? DEFAULT_SCOPES : scopes,
    ...mergeLimits(request.limits, DEFAULT_LIMITS),
    recordedClaims: recordedClaims.length === 0 ? [...byDefault] : recordedClaims,
    reusableTokens: request.reusableTokens,
  };
}

/** The problems of the conditions of a rule: names that take none, patterns that match everything, text that cannot be stored. */
export function conditionProblems(
  conditions: Readonly<Record<string, string>>,
  checkedClaims: readonly string[],
): Problem[] {
  const checked = checkedClaims
    .filter((name) => Object.hasOwn(conditions, name))
    .map((name) => ({
      path: `/conditions/${name}`,
      message: 'takes no condition: every rule checks this claim by itself',
    }));
  const texts = Object.entries(conditions).flat();
  const isUnstorable = texts.some((text) => storableText(text) !== text);
  return [
    ...checked,
    ...(isUnstorable ? [{ path: '', message: 'has U+0000' }] : []),
    ...(isOpen(conditions) ? [{ path: '/conditions', message: 'must have one that is not only *' }] : []),
  ];
}

/** The problem of conditions that name no owner, for an issuer that signs tokens for everybody. */
function ownerProblems(issuer: string, conditions: Readonly<Record<string, string>>): Problem[] {
  const known = findKnownIssuer(issuer);
  if (known === undefined || isOpen(conditions) || namesOwner(known, conditions)) return [];
  const names = Object.keys(known.owners).join(', ');
  const message = `must have one that names an owner before its first *, as acme/* does, of ${names}: this issuer signs tokens for everybody`;
  return [{ path: '/conditions', message }];
}

function isOpen(conditions: Readonly<Record<string, string>>): boolean {
  return Object.values(conditions).every((pattern) => /^\*+$/.test(pattern));
}
