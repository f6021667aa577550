/** Keys of the transit engine of HashiCorp Vault or OpenBao. Signatures that are wanted at once are made by one request. */
import { readFile, stat } from 'node:fs/promises';
import type { VaultTransitConfig } from '../../../config/signer/backends.js';
import type { KeyReference } from '../../../config/signer/keys.js';
import { SigningError } from '../../keys/signing-error.js';
import { type Backend, type BackendKey, wrongAlgorithm } from './backend.js';
import { batched } from './batched.js';
import { type JsonAnswer, type JsonApi, openJsonApi, said, textOf } from './json-api.js';
import { readEd25519, readPublicKey } from './public-keys.js';

/** Requests of one key that are open at once, and the signatures of one: more come together while they are under way. */
const REQUESTS = 4;
const BATCH = 256;

type Deps = { config: VaultTransitConfig; api: JsonApi; readToken: () => Promise<string> };

/** Opens a transit engine without connecting to it. */
export function openVaultTransit(config: VaultTransitConfig): Backend {
  const api = openJsonApi(REQUESTS);
  const deps: Deps = { config, api, readToken: tokenReader(config.tokenFile) };
  return { open: (reference, signal) => openKey(deps, reference, signal), close: api.close };
}

async function openKey(deps: Deps, reference: KeyReference, signal: AbortSignal): Promise<BackendKey> {
  const { key, version = '1' } = reference;
  const { data } = await call(deps, 'GET', `keys/${key}`, undefined, signal);
  const { type, keys } = Object(data) as Record<string, unknown>;
  const held = Object(Object(keys)[version]) as Record<string, unknown>;
  if (typeof held.public_key !== 'string') {
    throw new SigningError(
      `${key} has no version ${version} with a public key: vault read ${deps.config.mount}/keys/${key}`,
    );
  }
  const found =
    type === 'ed25519' ? readEd25519(Buffer.from(held.public_key, 'base64')) : readPublicKey(held.public_key);
  if (found === undefined) throw wrongAlgorithm(key, textOf(type));
  const signMany = (messages: readonly Uint8Array[], until: AbortSignal) =>
    signBatch(deps, { key, version: Number(version) }, messages, until);
  return { ...found, sign: batched(signMany, { requests: REQUESTS, batch: BATCH }) };
}

/** @returns a signature for each message, or why there is none */
async function signBatch(
  deps: Deps,
  { key, version }: { key: string; version: number },
  messages: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<(Uint8Array | Error)[]> {
  const body = {
    batch_input: messages.map((data) => ({ input: Buffer.from(data).toString('base64') })),
    key_version: version,
    hash_algorithm: 'sha2-256',
    marshaling_algorithm: 'asn1',
  };
  const { data } = await call(deps, 'POST', `sign/${key}`, body, signal);
  const results: unknown = Object(data).batch_results;
  return messages.map((_, i) => {
    const { signature, error } = Object(Array.isArray(results) ? results[i] : undefined);
    const [, base64] = /^vault:v\d+:([A-Za-z0-9+/=]+)$/.exec(textOf(signature)) ?? [];
    if (base64 !== undefined) return Buffer.from(base64, 'base64');
    return new SigningError(`Vault has not signed with ${key}${said(error)}`);
  });
}

async function call(
  { config, api, readToken }: Deps,
  method: 'GET' | 'POST',
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<JsonAnswer['json']> {
  const headers = {
    'x-vault-token': await readToken(),
    'x-vault-request': 'true',
    ...(config.namespace !== undefined && { 'x-vault-namespace': config.namespace }),
  };
  const url = `${config.url}/v1/${config.mount}/${path}`;
  const { status, json } = await api.send({ method, url, headers, body, signal });
  // A batch of which a part failed has 400 and results.
  if (status === 200 || Object(json.data).batch_results !== undefined) return json;
  throw new SigningError(
    explain(config, status, path) + said(Array.isArray(json.errors) ? json.errors[0] : ''),
  );
}

function explain({ mount, tokenFile }: VaultTransitConfig, status: number, path: string): string {
  switch (status) {
    case 403:
      return `Vault denies ${mount}/${path}: renew the token of ${tokenFile}, and allow the path in its policy`;
    case 404:
      return `Vault has no ${mount}/${path}`;
    case 429:
      return 'Vault throttles requests: raise its rate limit quota';
    case 503:
      return 'Vault is sealed or in standby: unseal it';
    default:
      return `Vault answers ${status} to ${mount}/${path}`;
  }
}

/** Reads the file again when it has changed: agents renew tokens. */
function tokenReader(path: string): () => Promise<string> {
  let known = { changedMs: Number.NaN, token: '' };
  return async () => {
    try {
      const { mtimeMs } = await stat(path);
      if (mtimeMs !== known.changedMs)
        known = { changedMs: mtimeMs, token: (await readFile(path, 'utf8')).trim() };
    } catch (error) {
      throw new SigningError(`the token of Vault cannot be read: ${(error as Error).message}`);
    }
    if (!/^[!-~]+$/.test(known.token)) throw new SigningError(`${path} holds no token of Vault`);
    return known.token;
  };
}
