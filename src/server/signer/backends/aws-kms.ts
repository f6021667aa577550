/** Keys of AWS KMS, by its SDK, with the credentials that this finds. */
import { createHash } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { SignCommandInput } from '@aws-sdk/client-kms';
import { silenceAwsNodeWarning } from '../../../config/process-env.js';
import type { AwsKmsConfig } from '../../../config/signer/backends.js';
import { SigningError } from '../../keys/signing-error.js';
import { type Backend, type BackendKey, loadPackage, wrongAlgorithm } from './backend.js';
import { said } from './json-api.js';
import { readPublicKey } from './public-keys.js';

/** An attempt leaves time for another one within the 3 s of the protocol. */
const ATTEMPT_MS = 1_200;
/** KMS digests no more than this itself, and for Ed25519 it takes no digest. */
const MAX_RAW_BYTES = 4_096;

const silent = () => undefined;
const SILENT = { trace: silent, debug: silent, info: silent, warn: silent, error: silent };

/** Opens KMS without connecting to it. Rejects with a SigningError. */
export async function openAwsKms(config: AwsKmsConfig): Promise<Backend> {
  silenceAwsNodeWarning();
  const sdk = await loadPackage('@aws-sdk/client-kms', () => import('@aws-sdk/client-kms'));
  const agent = { keepAlive: true, maxSockets: config.inFlight };
  const client = new sdk.KMSClient({
    ...(config.region !== undefined && { region: config.region }),
    ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
    maxAttempts: 2,
    logger: SILENT,
    requestHandler: {
      connectionTimeout: ATTEMPT_MS,
      requestTimeout: ATTEMPT_MS,
      throwOnRequestTimeout: true,
      httpAgent: new http.Agent(agent),
      httpsAgent: new https.Agent(agent),
    },
  });
  const open = async (key: string, abortSignal: AbortSignal): Promise<BackendKey> => {
    const command = new sdk.GetPublicKeyCommand({ KeyId: key });
    const described = await explaining(key, abortSignal, client.send(command, { abortSignal }));
    const found = readPublicKey(described.PublicKey ?? new Uint8Array());
    if (found === undefined) throw wrongAlgorithm(key, described.KeySpec ?? 'unknown');
    if (described.KeyUsage !== 'SIGN_VERIFY')
      throw new SigningError(`${key} is a key for ${described.KeyUsage}: make one for SIGN_VERIFY`);
    const sign = async (data: Uint8Array, until: AbortSignal) => {
      const request = new sdk.SignCommand({ KeyId: key, ...inputOf(found.algorithm, data) });
      const { Signature } = await explaining(key, until, client.send(request, { abortSignal: until }));
      if (Signature === undefined) throw new SigningError('KMS returned no signature');
      return Signature;
    };
    return { ...found, sign };
  };
  return { open: ({ key }, signal) => open(key, signal), close: async () => client.destroy() };
}

function inputOf(algorithm: BackendKey['algorithm'], data: Uint8Array): Omit<SignCommandInput, 'KeyId'> {
  if (algorithm === 'ecdsa-p256') {
    const Message = createHash('sha256').update(data).digest();
    return { Message, MessageType: 'DIGEST', SigningAlgorithm: 'ECDSA_SHA_256' };
  }
  if (data.length > MAX_RAW_BYTES) {
    throw new SigningError(
      `KMS signs at most ${MAX_RAW_BYTES} bytes by Ed25519, and these are ${data.length}`,
    );
  }
  return { Message: data, MessageType: 'RAW', SigningAlgorithm: 'ED25519_SHA_512' };
}

async function explaining<T>(key: string, signal: AbortSignal, work: Promise<T>): Promise<T> {
  return work.catch((error: Error) => {
    signal.throwIfAborted();
    throw new SigningError(explain(key, error) + said(error.message));
  });
}

function explain(key: string, { name }: Error): string {
  switch (name) {
    case 'AccessDeniedException':
      return `KMS denies it: allow kms:GetPublicKey and kms:Sign for ${key}`;
    case 'NotFoundException':
      return `KMS has no ${key} in this region`;
    case 'DisabledException':
    case 'KMSInvalidStateException':
      return `${key} is disabled, or waits for its deletion: enable it`;
    case 'InvalidKeyUsageException':
      return `${key} cannot sign with this algorithm`;
    case 'ThrottlingException':
    case 'LimitExceededException':
      return 'KMS throttles requests: raise the quota of cryptographic operations (ECC)';
    case 'CredentialsProviderError':
      return 'there are no AWS credentials';
    case 'ExpiredTokenException':
    case 'UnrecognizedClientException':
    case 'InvalidSignatureException':
    case 'IncompleteSignatureException':
      return 'KMS does not know these AWS credentials';
    default:
      return `KMS answers ${name}`;
  }
}
