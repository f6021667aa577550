/** Keys of an Azure Key Vault or a managed HSM, by its REST API. They are of P-256: there is no Ed25519. */
import { createHash } from 'node:crypto';
import type { TokenCredential } from '@azure/identity';
import type { AzureKeyVaultConfig } from '../../../config/signer/backends.js';
import type { KeyReference } from '../../../config/signer/keys.js';
import { derEcdsaSignature } from '../../../proof/asn1/der-write.js';
import { untilAborted } from '../../core/until-aborted.js';
import { SigningError } from '../../keys/signing-error.js';
import { type Backend, type BackendKey, loadPackage, wrongAlgorithm } from './backend.js';
import { type JsonAnswer, type JsonApi, openJsonApi, said, textOf } from './json-api.js';
import { readJwk } from './public-keys.js';

const API_VERSION = '7.4';
/** r and s. */
const SIGNATURE_BYTES = 64;
/** Renewal margin of a token. */
const EARLY_MS = 5 * 60_000;

type Deps = { config: AzureKeyVaultConfig; api: JsonApi; readToken: () => Promise<string> };

/** Opens a vault without connecting to it. `credential` replaces what Azure's SDK finds. */
export async function openAzureKeyVault(
  config: AzureKeyVaultConfig,
  credential?: TokenCredential,
): Promise<Backend> {
  const api = openJsonApi(config.inFlight);
  const readToken = tokenReader(credential ?? (await ambientCredential()), scopeOf(config.url));
  const deps: Deps = { config, api, readToken };
  return { open: (reference, signal) => openKey(deps, reference, signal), close: api.close };
}

async function ambientCredential(): Promise<TokenCredential> {
  const { DefaultAzureCredential } = await loadPackage('@azure/identity', () => import('@azure/identity'));
  return new DefaultAzureCredential();
}

/** `https://vault.azure.net/.default` for `https://name.vault.azure.net`, and so on for other clouds. */
function scopeOf(url: string): string {
  return `https://${new URL(url).hostname.replace(/^[^.]+\./, '')}/.default`;
}

async function openKey(deps: Deps, reference: KeyReference, signal: AbortSignal): Promise<BackendKey> {
  const path = `keys/${reference.key}/${reference.version}`;
  const { key } = await call(deps, 'GET', path, undefined, signal);
  const { kty, crv, x, y } = Object(key) as Record<string, unknown>;
  // A key in an HSM has a type of its own.
  const jwk = { kty: textOf(kty).replace(/-HSM$/, ''), crv: textOf(crv), x: textOf(x), y: textOf(y) };
  const found = readJwk(jwk);
  if (found === undefined) throw wrongAlgorithm(reference.key, `${jwk.kty} ${jwk.crv}`.trim());
  return {
    ...found,
    sign: async (data, until) => {
      const digest = createHash('sha256').update(data).digest('base64url');
      const body = { alg: 'ES256', value: digest };
      const { value } = await call(deps, 'POST', `${path}/sign`, body, until);
      const signature = Buffer.from(textOf(value), 'base64url');
      if (signature.length !== SIGNATURE_BYTES) throw new SigningError('Key Vault returned no signature');
      return derEcdsaSignature(signature);
    },
  };
}

async function call(
  { config, api, readToken }: Deps,
  method: 'GET' | 'POST',
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<JsonAnswer['json']> {
  const headers = { authorization: `Bearer ${await untilAborted(readToken(), signal)}` };
  const url = `${config.url}/${path}?api-version=${API_VERSION}`;
  const { status, json } = await api.send({ method, url, headers, body, signal });
  if (status === 200) return json;
  throw new SigningError(explain(config, status, path) + said(Object(json.error).message));
}

function explain({ url }: AzureKeyVaultConfig, status: number, path: string): string {
  switch (status) {
    case 401:
    case 403:
      return 'Key Vault denies it: the identity needs the role Key Vault Crypto User, or get and sign';
    case 404:
      return `${url} has no ${path.replace(/\/sign$/, '')}`;
    case 429:
      return 'Key Vault throttles requests: it makes 4,000 signatures in ten seconds a vault, or use a managed HSM';
    default:
      return `Key Vault answers ${status}`;
  }
}

function tokenReader(credential: TokenCredential, scope: string): () => Promise<string> {
  let known: Promise<{ token: string; expiresOnTimestamp: number } | null> | undefined;
  let expiresMs = 0;
  return async () => {
    if (known === undefined || (expiresMs !== 0 && Date.now() > expiresMs - EARLY_MS)) {
      expiresMs = 0;
      known = credential.getToken(scope);
    }
    try {
      const token = await known;
      if (token === null) throw new Error('there is no token');
      expiresMs = token.expiresOnTimestamp;
      return token.token;
    } catch (error) {
      known = undefined;
      throw new SigningError(
        `there are no Azure credentials, see AZURE_CLIENT_ID${said((error as Error).message)}`,
      );
    }
  };
}
