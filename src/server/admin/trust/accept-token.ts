import { createHash } from 'node:crypto';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import type { ExchangeTokenRequest } from '../../../../gen/attestation/v1/tokens_pb.js';
import type { Identity } from '../../../protocol/identity.js';
import type { Pool } from '../../database/connect.js';
import { invalidRequest } from '../../json/problems.js';
import type { OnceOnly } from '../store/exchanged-keys.js';
import { findRulesOfIssuer, isIssuerNamed, type TrustRuleRow } from '../store/trust-rules.js';
import { CLOCK_TOLERANCE_SECONDS } from './asymmetric.js';
import type { IssuerKeys } from './issuer-keys.js';
import { findMismatch, identityOf } from './match-rule.js';
import { NotTrusted } from './read-token.js';
import { verifyToken } from './verify-token.js';

/** The dependencies of judging a token. `clock`: Unix milliseconds. */
export type AcceptDeps = {
  pool: Pool;
  keys: IssuerKeys;
  /** The audience of rules that name none. */
  baseUrl: () => string;
  clock: () => number;
};

/** A token that a rule accepts. `once`: set if it is exchanged once. */
export type Accepted = { rule: TrustRuleRow; identity: Identity; once: OnceOnly | undefined };

const MAX_RULES = 1_000;
const MAX_REASONS = 10;

/**
 * Verifies a token whose claims were read, and finds the rule that accepts it. Nothing is fetched for an issuer that no
 * rule names. Throws NotTrusted, `service.unavailable` while the issuer's keys cannot be read, and `request.invalid` if
 * rules of several projects or environments accept it.
 */
export async function acceptToken(
  deps: AcceptDeps,
  { token, projectId, environment }: ExchangeTokenRequest,
  claims: JsonObject,
): Promise<Accepted> {
  const { pool, baseUrl } = deps;
  const { iss: issuer, jti } = claims;
  if (typeof issuer !== 'string' || issuer.includes('\0')) throw new NotTrusted('iss is not a text');
  const query = {
    issuer,
    projectId: projectId || undefined,
    environment: environment === Environment.UNSPECIFIED ? undefined : environment,
  };
  if (!(await isIssuerNamed(pool, query))) throw new NotTrusted('no trust rule names the issuer');
  const { exp } = await verifyToken(deps, token, issuer);
  const rule = chooseRule(await findRulesOfIssuer(pool, query, MAX_RULES + 1), claims, baseUrl());
  const once = rule.reusableTokens || jti === undefined ? undefined : onceOnly(issuer, jti, exp);
  return { rule, identity: identityOf(rule, claims), once };
}

/** The oldest rule that accepts the claims. */
function chooseRule(rules: readonly TrustRuleRow[], claims: JsonObject, ownAudience: string): TrustRuleRow {
  if (rules.length > MAX_RULES) throw needed('/project_id', 'too many trust rules name this issuer');
  const mismatches = rules.map((rule) => findMismatch(rule, claims, ownAudience));
  const accepting = rules.filter((_, index) => mismatches[index] === undefined);
  const [first] = accepting;
  if (first === undefined) {
    const reasons = rules.map(({ id }, index) => `${id}: ${mismatches[index]}`);
    throw new NotTrusted(reasons.slice(0, MAX_REASONS).join('; '));
  }
  if (accepting.some(({ projectId }) => projectId !== first.projectId))
    throw needed('/project_id', 'trust rules of several projects accept this token');
  if (accepting.some(({ environment }) => environment !== first.environment))
    throw needed('/environment', 'trust rules of both environments accept this token');
  return first;
}

function needed(path: string, reason: string): Error {
  return invalidRequest([{ path, message: `is needed: ${reason}` }]);
}

function onceOnly(issuer: string, jti: JsonValue, exp: number): OnceOnly {
  const hash = createHash('sha256')
    .update(JSON.stringify([issuer, jti]))
    .digest();
  return { hash, expiresAt: new Date((exp + CLOCK_TOLERANCE_SECONDS) * 1000) };
}
