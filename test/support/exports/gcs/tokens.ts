/** Google's tokens: exchanged for those of an identity provider (STS), and for those of service accounts (IAM). */
import { randomBytes } from 'node:crypto';
import type { GcsAnswer } from './answer.js';
import { failed, json } from './answer.js';

/** Who a token is of: the operator's workload, or a service account. */
type Token = { account: string; expiresMs: number };

export type TokenServer = {
  /** The account of a request's token; undefined if there is none, or it is unknown or expired. */
  accountOf(authorization: string | undefined): string | undefined;
  /** Answers requests of STS and IAM; undefined for others. */
  answer(request: TokenRequest): GcsAnswer | undefined;
  /** Lets the operator impersonate an account. */
  allowImpersonation(account: string): void;
  /** Takes requests without a token as the operator's, as emulators do. */
  allowAnonymous(): void;
  /** Expires all tokens of an account. */
  expire(account: string): void;
  /** How often each account got a token. */
  issued: Map<string, number>;
};

type TokenRequest = { method: string; path: string; authorization: string | undefined; body: string };

/** The account of the operator's workload. */
export const OPERATOR = 'operator';
/** What the identity provider of the workload gives it. */
export const SUBJECT_TOKEN = 'subject-token-of-the-workload';

/** Creates a server of tokens that last an hour of the clock. */
export function createTokenServer(clock: () => number): TokenServer {
  const tokens = new Map<string, Token>();
  let isOpen = false;
  const impersonable = new Set<string>();
  const issued = new Map<string, number>();
  const issue = (account: string) => {
    const value = `ya29.${randomBytes(24).toString('base64url')}`;
    const token = { account, expiresMs: clock() + 3_600_000 };
    tokens.set(value, token);
    issued.set(account, (issued.get(account) ?? 0) + 1);
    return { value, ...token };
  };
  const accountOf = (authorization = '') => {
    if (isOpen && authorization === '') return OPERATOR;
    const token = tokens.get(authorization.replace(/^Bearer /, ''));
    return token !== undefined && token.expiresMs > clock() ? token.account : undefined;
  };
  const impersonate = (account: string, caller: string | undefined): GcsAnswer => {
    if (caller !== OPERATOR)
      return failed(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
    if (!impersonable.has(account))
      return failed(
        403,
        'PERMISSION_DENIED',
        "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).",
      );
    const { value, expiresMs } = issue(account);
    return json(200, { accessToken: value, expireTime: new Date(expiresMs).toISOString() });
  };
  return {
    accountOf,
    issued,
    allowImpersonation: (account) => void impersonable.add(account),
    allowAnonymous: () => {
      isOpen = true;
    },
    expire: (account) => {
      for (const token of tokens.values()) if (token.account === account) token.expiresMs = 0;
    },
    answer: ({ method, path, authorization, body }) => {
      if (method !== 'POST') return undefined;
      if (path === '/sts/token') return exchange(new URLSearchParams(body), () => issue(OPERATOR).value);
      const [, account] =
        /^\/v1\/projects\/-\/serviceAccounts\/([^/]+):generateAccessToken$/.exec(path) ?? [];
      if (account === undefined) return undefined;
      return impersonate(decodeURIComponent(account), accountOf(authorization));
    },
  };
}

/** Workload identity federation (RFC 8693). */
function exchange(form: URLSearchParams, issue: () => string): GcsAnswer {
  if (form.get('subject_token') !== SUBJECT_TOKEN)
    return json(400, { error: 'invalid_grant', error_description: 'The subject token is invalid.' });
  return json(200, {
    access_token: issue(),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: 3600,
  });
}
