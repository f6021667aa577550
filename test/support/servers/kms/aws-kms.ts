/** AWS KMS as far as its reference has it of public keys and signatures, with real keys. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { type KmsAnswer, type KmsServer, signDigest, startKmsServer } from './kms-server.js';

/** What its clients have in their environment. */
export const AWS_ENV = {
  AWS_ACCESS_KEY_ID: 'AKIATEST',
  AWS_SECRET_ACCESS_KEY: 'secret',
  AWS_REGION: 'eu-central-1',
};

const TARGET = /^TrentService\.(GetPublicKey|Sign)$/;
const MAX_RAW_BYTES = 4096;

/** Serves keys by id. */
export function startAwsKms(
  test: { teardown(stop: () => Promise<unknown>): void },
  keys: Record<string, KeyObject>,
): Promise<KmsServer> {
  return startKmsServer(test, ({ headers, body }) => {
    if (
      !/^AWS4-HMAC-SHA256 Credential=AKIATEST\/\d{8}\/[\w-]+\/kms\/aws4_request,/.test(
        headers.authorization ?? '',
      )
    )
      return failed('UnrecognizedClientException', 'The security token included in the request is invalid.');
    const [, operation] = TARGET.exec(String(headers['x-amz-target'])) ?? [];
    const wanted = JSON.parse(body) as Record<string, string>;
    const { KeyId = '' } = wanted;
    const key = keys[KeyId];
    if (key === undefined) return failed('NotFoundException', `Key '${KeyId}' does not exist`);
    if (operation === 'GetPublicKey') return describe(KeyId, key);
    if (operation !== 'Sign') return failed('UnknownOperationException', '');
    return signOne(KeyId, key, wanted);
  });
}

function describe(KeyId: string, key: KeyObject): KmsAnswer {
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const KeySpec =
    key.asymmetricKeyType === 'ed25519'
      ? 'ECC_NIST_EDWARDS25519'
      : key.asymmetricKeyType === 'ec'
        ? 'ECC_NIST_P256'
        : 'RSA_2048';
  return {
    status: 200,
    json: { KeyId, PublicKey: spki.toString('base64'), KeySpec, KeyUsage: 'SIGN_VERIFY' },
  };
}

function signOne(KeyId: string, key: KeyObject, wanted: Record<string, string>): KmsAnswer {
  const { Message = '', MessageType, SigningAlgorithm } = wanted;
  const message = Buffer.from(Message, 'base64');
  const isEd25519 = key.asymmetricKeyType === 'ed25519';
  const isRight = isEd25519
    ? SigningAlgorithm === 'ED25519_SHA_512' && MessageType === 'RAW' && message.length <= MAX_RAW_BYTES
    : SigningAlgorithm === 'ECDSA_SHA_256' && MessageType === 'DIGEST' && message.length === 32;
  if (!isRight) return failed('ValidationException', 'The message does not suit the algorithm.');
  const signature = isEd25519 ? sign(null, message, key) : signDigest(message, key, 'der');
  return { status: 200, json: { KeyId, Signature: signature.toString('base64'), SigningAlgorithm } };
}

function failed(__type: string, message: string): KmsAnswer {
  return { status: 400, json: { __type, message } };
}
