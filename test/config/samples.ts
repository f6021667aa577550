/** Settings of a server and what is wrong with them. */
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type ConfigByCommand, readConfig } from '../../src/config/config.js';
import { ConfigError, type Env } from '../../src/config/settings.js';
import { createAuthorityKeys } from '../../src/server/timestamp-authority/certificate-authority.js';

/** Limits of a listener that no setting changes. */
export const OPEN_LIMITS = {
  maxConnections: 10_000,
  maxRequests: 4_096,
  maxHeldBytes: 64 * 1024 * 1024,
  maxConnectionsPerPeer: 1_000,
  maxRequestsPerPeer: 1_000,
  trustedProxies: ['127.0.0.0/8', '::1'],
};

const pem = (type: 'P-256' | 'P-384' | 'ed25519', form: 'pkcs8' | 'sec1' = 'pkcs8') => {
  const { privateKey } =
    type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: type });
  return privateKey.export({ type: form, format: 'pem' }).toString();
};
export const KEY = randomBytes(32).toString('base64');
export const SERVER = {
  DATABASE_URL: 'postgres://attest:hunter2hunter2@db:5432/attest',
  NATS_URL: 'nats://n1:4222,nats://n2:4222',
  SECRET_KEY: `k1:${KEY}`,
  ADMIN_TOKEN: 'sesame-sesame-sesame-sesame',
};
const authority = createAuthorityKeys({ clock: () => new Date(), randomBytes });
export const chain = authority.chain.map((der) => new X509Certificate(der).toString());
export const CHAIN = chain.join('');

/** A folder with key files and the settings of a server that uses them. */
export function server(t: Test): Record<string, string> & { dir: string } {
  const dir = t.testdir({
    'dsse-live.pem': pem('P-256'),
    'dsse-test.pem': pem('P-256'),
    'log-live.pem': pem('ed25519'),
    'log-test.pem': pem('ed25519'),
    'p384.pem': pem('P-384'),
    'sec1.pem': pem('P-256', 'sec1'),
    'broken.pem': '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n',
    'chain.pem': CHAIN,
    'tls.pem': CHAIN,
    'tls-key.pem': authority.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    'big.json': 'x'.repeat(1024 * 1024 + 1),
    schemas: {},
  });
  return {
    ...SERVER,
    DSSE_KEY_FILE: `live=${join(dir, 'dsse-live.pem')},test=${join(dir, 'dsse-test.pem')}`,
    LOG_KEY_FILE: `live=${join(dir, 'log-live.pem')},test=${join(dir, 'log-test.pem')}`,
    dir,
  };
}

/** Every problem as `<name> <problem>`; empty when there is none. */
export function problemsOf(env: Env, process: keyof ConfigByCommand = 'up'): string[] {
  try {
    readConfig(env, { process });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ name, problem }) => `${name} ${problem}`);
  }
}
