/** An issuer of OpenID Connect tokens as CI services have it: discovery, keys, and tokens of their jobs. */
import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';
import type { Test } from 'tap';

type SigningKey = { kid: string; privateKey: CryptoKey; jwk: JWK };

export type Issuer = {
  /** As `iss` of its tokens has it. */
  url: string;
  /** How often its discovery document and its keys were asked for. */
  asked: { discovery: number; keys: number };
  /** What it publishes; tests change it. */
  keys: SigningKey[];
  /** Replaces its answers, as by a failure; undefined: it answers as it should. */
  answer: ((path: string, response: ServerResponse) => void) | undefined;
  newKey: (algorithm?: string) => Promise<SigningKey>;
  /** Signs claims with its first key, or another, without adding any. */
  sign: (claims: JWTPayload, header?: Partial<JWTHeaderParameters>, key?: SigningKey) => Promise<string>;
};

/** Starts one with a key, until the test ends; with https if it gets a certificate. */
export async function startIssuer(
  t: Pick<Test, 'teardown'>,
  algorithm = 'RS256',
  tls?: ServerOptions,
): Promise<Issuer> {
  const answer: RequestListener = (request, response) => {
    const path = request.url ?? '';
    if (path.startsWith('/.well-known/')) issuer.asked.discovery++;
    if (path === '/keys') issuer.asked.keys++;
    if (issuer.answer !== undefined) return issuer.answer(path, response);
    response.setHeader('content-type', 'application/json');
    const discovery = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
    response.end(JSON.stringify(path === '/keys' ? { keys: issuer.keys.map(({ jwk }) => jwk) } : discovery));
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer: Issuer = {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: { discovery: 0, keys: 0 },
    keys: [],
    answer: undefined,
    newKey,
    sign: (claims, header, key = issuer.keys[0]) => {
      if (key === undefined) throw new Error('the issuer has no key');
      const alg = key.jwk.alg ?? '';
      return new SignJWT(claims).setProtectedHeader({ alg, kid: key.kid, ...header }).sign(key.privateKey);
    },
  };
  issuer.keys.push(await newKey(algorithm));
  return issuer;
}

async function newKey(algorithm = 'RS256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const kid = randomUUID();
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' } };
}

const SHA = '6113728f27ae82c7b1a177c8d03f9e96e0adf246';

/** The claims of a job of GitHub Actions, as documented, for five minutes. */
export function githubClaims(issuer: string, audience: string, more: JWTPayload = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000);
  return {
    jti: randomUUID(),
    sub: 'repo:acme/app:ref:refs/heads/main',
    aud: audience,
    iss: issuer,
    nbf: now - 5,
    iat: now - 5,
    exp: now + 300,
    ref: 'refs/heads/main',
    ref_type: 'branch',
    ref_protected: 'true',
    sha: SHA,
    repository: 'acme/app',
    repository_id: '74',
    repository_owner: 'acme',
    repository_owner_id: '65',
    repository_visibility: 'private',
    run_id: '9302176411',
    run_number: '10',
    run_attempt: '2',
    runner_environment: 'github-hosted',
    actor: 'octocat',
    actor_id: '12',
    event_name: 'push',
    workflow: 'CI',
    workflow_ref: 'acme/app/.github/workflows/ci.yml@refs/heads/main',
    workflow_sha: SHA,
    job_workflow_ref: 'acme/app/.github/workflows/ci.yml@refs/heads/main',
    ...more,
  };
}

/** The claims of a job of GitLab CI, as documented, for an hour. */
export function gitlabClaims(issuer: string, audience: string, more: JWTPayload = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000);
  return {
    jti: randomUUID(),
    iss: issuer,
    aud: audience,
    sub: 'project_path:acme/app:ref_type:branch:ref:main',
    iat: now,
    nbf: now - 5,
    exp: now + 3600,
    namespace_id: '72',
    namespace_path: 'acme',
    project_id: '20',
    project_path: 'acme/app',
    user_id: '1',
    user_login: 'sample-user',
    user_email: 'sample-user@example.com',
    user_identities: [{ provider: 'github', extern_uid: '2435223452345' }],
    pipeline_id: '574',
    pipeline_source: 'push',
    job_id: '302',
    ref: 'main',
    ref_type: 'branch',
    ref_path: 'refs/heads/main',
    ref_protected: 'true',
    groups_direct: ['acme', 'acme/tools'],
    environment: 'production',
    environment_protected: 'true',
    deployment_tier: 'production',
    runner_id: 1,
    runner_environment: 'gitlab-hosted',
    sha: SHA,
    project_visibility: 'public',
    ci_config_ref_uri: 'gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main',
    ci_config_sha: SHA,
    ...more,
  };
}
