/** The transit engine of Vault as far as its documentation has it of keys and signatures, with real keys. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { type KmsAnswer, type KmsServer, startKmsServer } from './kms-server.js';

export const VAULT_TOKEN = 'hvs.test';

/** Serves keys by name at the mount `transit`, each with one version. */
export function startVault(
  test: { teardown(stop: () => Promise<unknown>): void },
  keys: Record<string, KeyObject>,
): Promise<KmsServer> {
  return startKmsServer(test, ({ method, path, headers, body }) => {
    const [, verb, name = ''] = /^\/v1\/transit\/(keys|sign)\/([\w.-]+)$/.exec(path) ?? [];
    if (headers['x-vault-token'] !== VAULT_TOKEN) return failed(403, 'permission denied');
    const key = keys[name];
    if (verb === 'keys' && method === 'GET') {
      if (key === undefined) return { status: 404, json: { errors: [] } };
      return { status: 200, json: { data: describe(name, key) } };
    }
    if (verb !== 'sign' || method !== 'POST') return failed(405, 'unsupported operation');
    if (key === undefined) return failed(400, 'signing key not found');
    return signAll(key, JSON.parse(body) as Record<string, unknown>);
  });
}

function failed(status: number, error: string): KmsAnswer {
  return { status, json: { errors: [error] } };
}

function describe(name: string, key: KeyObject) {
  const publicKey = createPublicKey(key);
  const isEd25519 = key.asymmetricKeyType === 'ed25519';
  const type = isEd25519 ? 'ed25519' : key.asymmetricKeyType === 'ec' ? 'ecdsa-p256' : 'rsa-2048';
  const public_key = isEd25519
    ? publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64')
    : publicKey.export({ type: 'spki', format: 'pem' });
  const created = '2026-01-01T00:00:00Z';
  return { name, type, latest_version: 1, keys: { 1: { name: type, public_key, creation_time: created } } };
}

/** A wrong input fails alone, with 400 for the whole. */
function signAll(key: KeyObject, wanted: Record<string, unknown>): KmsAnswer {
  if (wanted.key_version !== 1) return failed(400, 'requested version for signing is higher than the latest');
  if (wanted.hash_algorithm !== 'sha2-256' || wanted.marshaling_algorithm !== 'asn1')
    return failed(400, 'unexpected algorithm');
  const results = (wanted.batch_input as { input: string }[]).map(({ input }) => {
    const data = Buffer.from(input, 'base64');
    if (data.includes('poison')) return { error: 'unable to decode input' };
    const algorithm = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
    const signature = sign(algorithm, data, { key, dsaEncoding: 'der' });
    return { signature: `vault:v1:${signature.toString('base64')}`, key_version: 1 };
  });
  const status = results.some(({ error }) => error !== undefined) ? 400 : 200;
  return { status, json: { data: { batch_results: results } } };
}
