/** The headers that authorise requests to a bucket: of an impersonated service account, or of the operator. */

import { untilAborted } from '../../../core/until-aborted.js';
import { type DestinationContext, DestinationError } from '../destination.js';
import type { HttpClient } from '../http-client.js';
import { toImpersonationError } from './gcs-error.js';

const SCOPE = 'https://www.googleapis.com/auth/devstorage.read_write';
const LIFETIME_S = 3600;
/** Renewal margin of a token: longer than a request. */
const EARLY_MS = 5 * 60_000;
const LIBRARY_MS = 30_000;

/** The operator's credentials, as google-auth-library finds them (Application Default Credentials). */
export type OperatorCredentials = {
  readonly universeDomain: string;
  getRequestHeaders(): Promise<Readonly<Record<string, string>>>;
};

/** The identity that makes requests. */
export type Identity = {
  /** The headers of a request. Rejects with `DestinationError`. */
  authorise(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Drops a token that was rejected. */
  forget(): void;
};

/** Anonymous access, for emulators. */
export const ANONYMOUS: Identity = { authorise: async () => ({}), forget: () => {} };

/**
 * Explains why a destination may not be opened; undefined if it may. A service account's id must contain the project's,
 * because whoever may name any account could use those of other projects, which let this service impersonate them too.
 */
export function findAccountProblem(context: DestinationContext): string | undefined {
  const { bucket, serviceAccount } = context.destination;
  if (serviceAccount === '') {
    if (context.isOperators || context.ambientCredentials.includes(bucket)) return undefined;
    return 'give service_account, the address of a service account that this service may impersonate';
  }
  const id = context.projectId.replace(/^prj_/, '').toLowerCase();
  if (serviceAccount.split('@', 1).join('').includes(id)) return undefined;
  return (
    `the id of service_account must contain ${id}, so that no other project can use it; ` +
    `create one: gcloud iam service-accounts create p-${id}`
  );
}

/** The operator's identity. The library renews the tokens; it cannot be aborted, so the wait for it is bounded. */
export function asOperator(operator: OperatorCredentials): Identity {
  const authorise: Identity['authorise'] = async (signal) => {
    try {
      const bound = AbortSignal.any([signal, AbortSignal.timeout(LIBRARY_MS)]);
      return await untilAborted(operator.getRequestHeaders(), bound);
    } catch {
      signal.throwIfAborted();
      // The library's errors hold requests with secrets, and their messages name files of the operator.
      throw new DestinationError("this service's own Google credentials do not work; ask its operator");
    }
  };
  return { authorise, forget: () => {} };
}

type ImpersonationDeps = { http: HttpClient; source: Identity; endpoint: string; clock: () => number };

const NO_TOKEN = { value: '', expiresMs: 0 };

/** A service account, with tokens that the operator's credentials are exchanged for. */
export function asServiceAccount(deps: ImpersonationDeps, account: string): Identity {
  let token = NO_TOKEN;
  return {
    authorise: async (signal) => {
      if (deps.clock() >= token.expiresMs - EARLY_MS) token = await generateToken(deps, account, signal);
      return { authorization: `Bearer ${token.value}` };
    },
    forget: () => {
      token = NO_TOKEN;
    },
  };
}

async function generateToken(
  { http, source, endpoint }: ImpersonationDeps,
  account: string,
  signal: AbortSignal,
): Promise<typeof NO_TOKEN> {
  const url = `${endpoint}/v1/projects/-/serviceAccounts/${encodeURIComponent(account)}:generateAccessToken`;
  const headers = { ...(await source.authorise(signal)), 'content-type': 'application/json' };
  const body = JSON.stringify({ scope: [SCOPE], lifetime: `${LIFETIME_S}s` });
  const answer = await http.send({ method: 'POST', url, headers, body, signal });
  if (answer.status !== 200) throw toImpersonationError(answer, account);
  return parseToken(answer.body);
}

function parseToken(body: string): typeof NO_TOKEN {
  const invalid = new DestinationError('Google answered with an invalid access token');
  try {
    const { accessToken, expireTime } = Object(JSON.parse(body)) as Record<string, unknown>;
    const expiresMs = Date.parse(String(expireTime));
    if (typeof accessToken !== 'string' || !/^[!-~]+$/.test(accessToken) || Number.isNaN(expiresMs))
      throw invalid;
    return { value: accessToken, expiresMs };
  } catch {
    throw invalid;
  }
}
