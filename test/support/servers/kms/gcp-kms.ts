/** Google Cloud KMS as far as its reference has it of public keys and signatures, with real keys and tokens. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { type KmsAnswer, type KmsRequest, type KmsServer, signDigest, startKmsServer } from './kms-server.js';

/** What the identity provider of the workload gives it. */
export const GCP_SUBJECT_TOKEN = 'subject-token-of-the-workload';
const TOKEN = 'ya29.test';

/** The resource name of a key's version. */
export const gcpName = (key: string) =>
  `projects/p/locations/europe-west3/keyRings/ring/cryptoKeys/${key}/cryptoKeyVersions/1`;

/** Workload identity federation: what the workload has in a file is exchanged for a token by the server. */
export function gcpCredentials({ url }: KmsServer, subjectTokenFile: string): string {
  return JSON.stringify({
    type: 'external_account',
    audience:
      '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${url}/sts/token`,
    credential_source: { file: subjectTokenFile },
  });
}

/** Serves keys by name. Bytes whose checksum is wrong are not signed. */
export function startGcpKms(
  test: { teardown(stop: () => Promise<unknown>): void },
  keys: Record<string, KeyObject>,
): Promise<KmsServer> {
  return startKmsServer(test, (request) => {
    if (request.path === '/sts/token') return issue(request);
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return failed(401, 'UNAUTHENTICATED');
    const [, resource = '', name = '', verb] =
      /^\/v1\/(projects\/p\/locations\/[\w-]+\/keyRings\/\w+\/cryptoKeys\/([\w-]+)\/cryptoKeyVersions\/1)(.*)$/.exec(
        request.path,
      ) ?? [];
    const key = keys[name];
    if (key === undefined) return failed(404, `CryptoKeyVersion ${resource} not found.`);
    if (request.method === 'GET' && verb === '/publicKey') return describe(resource, key);
    if (request.method !== 'POST' || verb !== ':asymmetricSign') return failed(404, 'Not Found');
    return signOne(resource, key, JSON.parse(request.body) as Record<string, unknown>);
  });
}

/** Exchanges a token (RFC 8693). */
function issue({ body }: KmsRequest): KmsAnswer {
  if (new URLSearchParams(body).get('subject_token') !== GCP_SUBJECT_TOKEN)
    return { status: 400, json: { error: 'invalid_grant' } };
  const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token';
  return {
    status: 200,
    json: { access_token: TOKEN, issued_token_type, expires_in: 3600, token_type: 'Bearer' },
  };
}

function failed(status: number, message: string): KmsAnswer {
  return { status, json: { error: { code: status, message } } };
}

function describe(name: string, key: KeyObject): KmsAnswer {
  const pem = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  return { status: 200, json: { name, pem, pemCrc32c: checksum(pem), algorithm: algorithmOf(key) } };
}

function algorithmOf({ asymmetricKeyType }: KeyObject): string {
  if (asymmetricKeyType === 'ed25519') return 'EC_SIGN_ED25519';
  return asymmetricKeyType === 'ec' ? 'EC_SIGN_P256_SHA256' : 'RSA_SIGN_PKCS1_2048_SHA256';
}

/** Ed25519 takes data and no digest, P-256 here a digest and no data. */
function signOne(name: string, key: KeyObject, wanted: Record<string, unknown>): KmsAnswer {
  const isEd25519 = key.asymmetricKeyType === 'ed25519';
  const { sha256 } = Object(wanted.digest) as { sha256?: string };
  const base64 = isEd25519 ? wanted.data : sha256;
  const given = isEd25519 ? wanted.dataCrc32c : wanted.digestCrc32c;
  if (typeof base64 !== 'string' || (isEd25519 ? wanted.digest : wanted.data) !== undefined)
    return failed(400, 'INVALID_ARGUMENT');
  const bytes = Buffer.from(base64, 'base64');
  if (given !== checksum(bytes)) return failed(400, 'The checksum does not match the data.');
  const signature = isEd25519 ? sign(null, bytes, key) : signDigest(bytes, key, 'der');
  const verified = isEd25519 ? { verifiedDataCrc32c: true } : { verifiedDigestCrc32c: true };
  const signatureCrc32c = checksum(signature);
  return {
    status: 200,
    json: {
      name,
      signature: signature.toString('base64'),
      signatureCrc32c,
      ...verified,
      protectionLevel: 'HSM',
    },
  };
}

/** CRC-32C bit by bit, in decimal, as JSON has 64-bit integers. */
function checksum(bytes: string | Uint8Array): string {
  let value = 0xffffffff;
  for (const byte of Buffer.from(bytes)) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  }
  return String((value ^ 0xffffffff) >>> 0);
}
