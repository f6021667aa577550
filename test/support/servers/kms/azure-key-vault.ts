/** Azure Key Vault as far as its reference has it of keys and signatures, with real keys. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { type KmsAnswer, type KmsServer, signDigest, startKmsServer } from './kms-server.js';

export const AZURE_TOKEN = 'ey.test';
export const AZURE_VERSION = '0123456789abcdef0123456789abcdef';

const DIGEST_BYTES = 32;

/** Serves keys by name, each with one version. */
export async function startKeyVault(
  test: { teardown(stop: () => Promise<unknown>): void },
  keys: Record<string, KeyObject>,
): Promise<KmsServer> {
  const server = await startKmsServer(test, ({ method, path, query, headers, body }) => {
    if (headers.authorization !== `Bearer ${AZURE_TOKEN}`) return failed(401, 'Unauthorized');
    if (query.get('api-version') !== '7.4') return failed(400, 'BadParameter');
    const [, name = '', version, verb] = /^\/keys\/([\w-]+)\/([0-9a-f]{32})(\/sign)?$/.exec(path) ?? [];
    const key = keys[name];
    if (key === undefined || version !== AZURE_VERSION) return failed(404, 'KeyNotFound');
    const kid = `${server.url}/keys/${name}/${version}`;
    if (method === 'GET' && verb === undefined) return { status: 200, json: { key: describe(kid, key) } };
    if (method !== 'POST' || verb === undefined) return failed(404, 'Not Found');
    const { alg, value } = JSON.parse(body) as { alg: string; value: string };
    const digest = Buffer.from(value, 'base64url');
    if (alg !== 'ES256' || digest.length !== DIGEST_BYTES) return failed(400, 'BadParameter');
    const signature = signDigest(digest, key, 'compact').toString('base64url');
    return { status: 200, json: { kid, value: signature } };
  });
  return server;
}

function describe(kid: string, key: KeyObject) {
  const jwk = createPublicKey(key).export({ format: 'jwk' });
  return { kid, ...jwk, kty: `${jwk.kty}-HSM`, key_ops: ['sign', 'verify'] };
}

function failed(status: number, code: string): KmsAnswer {
  return { status, json: { error: { code, message: `${code} as it is said.` } } };
}
