/** Keys of Google Cloud KMS, by its REST API, with application default credentials. */
import { createHash } from 'node:crypto';
import type { GcpKmsConfig } from '../../../config/signer/backends.js';
import { untilAborted } from '../../core/until-aborted.js';
import { SigningError } from '../../keys/signing-error.js';
import { type Backend, type BackendKey, loadPackage, wrongAlgorithm } from './backend.js';
import { crc32c } from './crc32c.js';
import { type JsonAnswer, type JsonApi, openJsonApi, said, textOf } from './json-api.js';
import { readPublicKey } from './public-keys.js';

const SCOPE = 'https://www.googleapis.com/auth/cloudkms';

type Deps = { config: GcpKmsConfig; api: JsonApi; authorise: () => Promise<Record<string, string>> };

/** Opens Cloud KMS without connecting to it. Rejects with a SigningError if there are no credentials. */
export async function openGcpKms(config: GcpKmsConfig): Promise<Backend> {
  const { GoogleAuth } = await loadPackage('google-auth-library', () => import('google-auth-library'));
  // The names of keys have their projects; without one here the library asks for it.
  const auth = new GoogleAuth({ scopes: SCOPE, projectId: 'none' });
  const authorise = async () => {
    try {
      // The library keeps the token, and renews it before its end.
      return Object.fromEntries(await auth.getRequestHeaders());
    } catch (error) {
      const { message } = error as Error;
      throw new SigningError(
        `there are no Google credentials, see GOOGLE_APPLICATION_CREDENTIALS${said(message)}`,
      );
    }
  };
  const api = openJsonApi(config.inFlight);
  const deps: Deps = { config, api, authorise };
  return { open: ({ key }, signal) => openKey(deps, key, signal), close: api.close };
}

async function openKey(deps: Deps, key: string, signal: AbortSignal): Promise<BackendKey> {
  const { pem, pemCrc32c, algorithm } = await call(deps, 'GET', key, '/publicKey', undefined, signal);
  if (Number(pemCrc32c) !== crc32c(Buffer.from(textOf(pem)))) throw corrupted('public key');
  const found = readPublicKey(textOf(pem));
  const isSigning = ['EC_SIGN_P256_SHA256', 'EC_SIGN_ED25519'].includes(textOf(algorithm));
  if (found === undefined || !isSigning) throw wrongAlgorithm(key, textOf(algorithm));
  return {
    ...found,
    sign: (data, until) => sign(deps, key, { data, isDigested: found.algorithm === 'ecdsa-p256' }, until),
  };
}

/** Both ways the bytes have a checksum, as Google wants it of whoever relies on them. */
async function sign(
  deps: Deps,
  key: string,
  { data, isDigested }: { data: Uint8Array; isDigested: boolean },
  signal: AbortSignal,
): Promise<Uint8Array> {
  const bytes = isDigested ? createHash('sha256').update(data).digest() : data;
  const base64 = Buffer.from(bytes).toString('base64');
  const body = isDigested
    ? { digest: { sha256: base64 }, digestCrc32c: String(crc32c(bytes)) }
    : { data: base64, dataCrc32c: String(crc32c(bytes)) };
  const answer = await call(deps, 'POST', key, ':asymmetricSign', body, signal);
  const signature = Buffer.from(textOf(answer.signature), 'base64');
  const isReceived = isDigested ? answer.verifiedDigestCrc32c : answer.verifiedDataCrc32c;
  if (isReceived !== true || answer.name !== key) throw corrupted('request');
  if (Number(answer.signatureCrc32c) !== crc32c(signature)) throw corrupted('signature');
  return signature;
}

async function call(
  { config, api, authorise }: Deps,
  method: 'GET' | 'POST',
  key: string,
  verb: string,
  body: unknown,
  signal: AbortSignal,
): Promise<JsonAnswer['json']> {
  const headers = await untilAborted(authorise(), signal);
  const url = `${config.endpoint}/v1/${key}${verb}`;
  const { status, json } = await api.send({ method, url, headers, body, signal });
  if (status === 200) return json;
  throw new SigningError(explain(status, key) + said(Object(json.error).message));
}

function explain(status: number, key: string): string {
  switch (status) {
    case 400:
      return `Cloud KMS cannot sign with ${key}: is the version enabled?`;
    case 401:
    case 403:
      return 'Cloud KMS denies it: the service account needs roles/cloudkms.signerVerifier';
    case 404:
      return `Cloud KMS has no ${key}`;
    case 429:
      return 'Cloud KMS throttles requests: raise the quota of asymmetric requests';
    default:
      return `Cloud KMS answers ${status}`;
  }
}

function corrupted(what: string): SigningError {
  return new SigningError(`the ${what} was corrupted on the way to or from Cloud KMS`);
}
