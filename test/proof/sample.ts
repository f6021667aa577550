/** A service with real keys, and what it attests, for the tests of bundles and their verification. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { utf8 } from '../../src/proof/bytes/encoding.js';
import type { MlDsaKey } from '../../src/server/keys/ml-dsa-key.js';
import {
  openTimestampAuthority,
  type TimestampAuthority,
} from '../../src/server/timestamp-authority/timestamp-authority.js';

export const NOW = new Date('2025-06-07T12:00:00.000Z');
export const SUBMITTED_AT = '2025-06-07T11:59:59.123Z';
export const STAMPED_AT = new Date('2025-06-07T12:00:01.000Z');
/** What a stamp of that time proves: the authority has whole seconds, and says so. */
export const STAMP_PROVES = new Date('2025-06-07T12:00:02.000Z');
export const ARTIFACT = utf8('the artifact that was tested');
export const METADATA = { schema: 'purl', purl: 'pkg:npm/tap@21.8.0' };
export const PROJECT = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZZ';
export const SUBMISSION_ID = 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ';

/** Where the leaf stands, where its batch ends, and a later checkpoint that a slower witness vouches for. */
export const LOG_INDEX = 700;
export const BATCH = { id: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ', firstIndex: 650, treeSize: 1000 };
export const LATER_SIZE = 1300;

export function ed25519() {
  const { privateKey } = generateKeyPairSync('ed25519');
  return {
    publicKey: rawPublicKey(privateKey),
    sign: (data: Uint8Array) => plainSign(null, data, privateKey),
  };
}

function rawPublicKey(privateKey: KeyObject): Uint8Array {
  return new Uint8Array(Buffer.from(privateKey.export({ format: 'jwk' }).x!, 'base64url'));
}

function plainSign(algorithm: string | null, data: Uint8Array, key: KeyObject): Uint8Array {
  return new Uint8Array(sign(algorithm, data, key));
}

/** A service's keys. */
export type Service = {
  origin: string;
  environment: 'live' | 'test';
  dsse: { publicKey: Uint8Array; sign: (data: Uint8Array) => Uint8Array };
  log: ReturnType<typeof ed25519> & { mlDsa?: MlDsaKey };
  /** With a second key it signs twice. */
  cosigner: ReturnType<typeof ed25519> & { name: string; mlDsa?: MlDsaKey };
  authority: TimestampAuthority;
  /** How what it signs and logs differs from what is known today. */
  form?: {
    payloadType?: string;
    payload?: (statement: string) => string;
    record?: (record: string) => string;
    /** Lines after the root of a checkpoint. */
    lines?: string;
  };
};

export async function makeService(dir: string, environment: 'live' | 'test' = 'live'): Promise<Service> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    origin: `${environment}.log.example`,
    environment,
    dsse: {
      publicKey: new Uint8Array(publicKey.export({ type: 'spki', format: 'der' })),
      sign: (data) => plainSign('sha256', data, privateKey),
    },
    log: ed25519(),
    cosigner: { name: 'witness.example/w1', ...ed25519() },
    authority: await openTimestampAuthority({ dir, clock: () => STAMPED_AT, randomBytes }),
  };
}
