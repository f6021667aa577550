import { create, type JsonValue } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  type ExchangedKey,
  ExchangedKeySchema,
  type ExchangeTokenRequest,
  type TokenService,
} from '../../../../gen/attestation/v1/tokens_pb.js';
import type { Call, Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { Principal } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import type { RateState } from '../../core/rate-window.js';
import type { Sql } from '../../database/connect.js';
import type { TokenLimits } from '../../limits/token-limits.js';
import { toEnvironment } from '../api-key-rules.js';
import { recordAction } from '../audit-log.js';
import type { NewSecret } from '../create-api-key.js';
import { principalOfRule } from '../principals.js';
import { claimToken, insertExchangedKey, replaceSecret } from '../store/exchanged-keys.js';
import { type AcceptDeps, type Accepted, acceptToken } from './accept-token.js';
import { NotTrusted, readToken } from './read-token.js';

/** The dependencies of the exchange. */
type ExchangeDeps = AcceptDeps & {
  random: RandomSource;
  limits: TokenLimits;
  /** Counts reads in the windows of a rule. Throws `rate_limit.exceeded`. */
  takeReads: (principal: Principal, count: number) => Promise<RateState>;
  log: Pick<Logger, 'warn'>;
  createSecret: (environment: Principal['environment']) => NewSecret;
  /** Called after the secret of a key of this rule was replaced. */
  onKeyChange: (trustRuleId: string) => void;
};

/** An exchange counts as so many reads, as other calls that change something do. */
const COST = 10;
const KEY_LIFETIME_MS = 15 * 60_000;
/** An answer that was lost can be asked for again within this. */
const REPEAT_MS = 2 * 60_000;

/** The handlers of TokenService. */
export function tokenHandlers(deps: ExchangeDeps): Handlers<typeof TokenService> {
  return { exchangeToken: (request, call) => exchangeToken(deps, request, call) };
}

async function exchangeToken(
  deps: ExchangeDeps,
  { token, ...request }: ExchangeTokenRequest,
  call: Call,
): Promise<ExchangedKey> {
  const { limits, log } = deps;
  limits.assertOpen(call.peer);
  let from: { issuer?: string | undefined; subject?: string | undefined } = {};
  try {
    const claims = readToken(token);
    from = { issuer: shown(claims.iss), subject: shown(claims.sub) };
    return await exchange(deps, call, await acceptToken(deps, { token, ...request }, claims));
  } catch (error) {
    if (!(error instanceof NotTrusted)) throw error;
    const { requestId } = call;
    log.warn({ request_id: requestId, ...from, reason: error.message }, 'a token is not trusted');
    await limits.count(call.peer);
    const message = `the token is not trusted; the operator's log has the reason under ${requestId}`;
    throw new ApiError(ErrorCode.TOKEN_NOT_TRUSTED, message);
  }
}

const MAX_SHOWN = 512;

/** The start of a claim that is a text, for the log. */
function shown(claim: JsonValue | undefined): string | undefined {
  return typeof claim === 'string' ? claim.slice(0, MAX_SHOWN) : undefined;
}

/**
 * Makes a key for a token. Commit point: that of the transaction, which holds the key, the record of the token and the
 * audit entry. A crash after it leaves a key that nobody has, and which expires. The same token, sent again within two
 * minutes, gets the same key with another secret: so that a lost answer costs nothing, and a token never has two keys
 * that work.
 */
async function exchange(deps: ExchangeDeps, call: Call, accepted: Accepted): Promise<ExchangedKey> {
  const { rule, identity } = accepted;
  const { secret, ...stored } = deps.createSecret(toEnvironment(rule.environment));
  const newId = `key_${deps.random.ulid(deps.clock())}`;
  call.rateStates = [await deps.takeReads(principalOfRule(rule, { keyId: newId, identity }), COST)];
  const key = await deps.pool.begin((tx) => storeKey(deps, tx, call, accepted, { newId, ...stored }));
  if (key.isRepeat) deps.onKeyChange(rule.id);
  return create(ExchangedKeySchema, {
    id: key.id,
    secret,
    expiresAt: timestampFromDate(key.expiresAt),
    projectId: rule.projectId,
    environment: rule.environment,
    scopes: rule.scopes,
    trustRuleId: rule.id,
    identity,
  });
}

async function storeKey(
  deps: ExchangeDeps,
  tx: Sql,
  call: Call,
  { rule, identity, once }: Accepted,
  { newId, ...stored }: Omit<NewSecret, 'secret'> & { newId: string },
): Promise<{ id: string; expiresAt: Date; isRepeat: boolean }> {
  const earlier = once && (await claimToken(tx, once, newId));
  if (earlier !== undefined && earlier.ageMs > REPEAT_MS)
    throw new NotTrusted(`the token was exchanged before, for ${earlier.keyId}`);
  const { keyId: id = newId } = earlier ?? {};
  const key = { id, trustRuleId: rule.id, identity, ...stored };
  const expiresAt =
    earlier === undefined
      ? await insertExchangedKey(tx, { ...key, lifetimeMs: KEY_LIFETIME_MS })
      : await replaceSecret(tx, key);
  if (expiresAt === undefined)
    throw new NotTrusted(`the token was exchanged before by another rule, for ${id}`);
  const detail = { trust_rule: rule.id, ...(earlier && { repeated: true }) };
  const principal = principalOfRule(rule, { keyId: id, identity });
  const action = AuditAction.TOKEN_EXCHANGED;
  await recordAction(deps, tx, { ...call, principal }, { action, resourceId: id, detail });
  return { id, expiresAt, isRepeat: earlier !== undefined };
}
