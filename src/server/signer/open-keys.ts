/** Opens the backends of `attest signer` and finds their keys. */

import { ConfigError } from '../../config/settings.js';
import type { BackendConfig } from '../../config/signer/backends.js';
import type { SignerKeyConfig } from '../../config/signer/keys.js';
import { limitConcurrency } from '../core/limit-concurrency.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { untilAborted } from '../core/until-aborted.js';
import { SigningError } from '../keys/signing-error.js';
import { openAwsKms } from './backends/aws-kms.js';
import { openAzureKeyVault } from './backends/azure-key-vault.js';
import { type Backend, type BackendKey, CredentialRejected } from './backends/backend.js';
import { openGcpKms } from './backends/gcp-kms.js';
import { openPkcs11 } from './backends/pkcs11/pkcs11.js';
import { openVaultTransit } from './backends/vault-transit.js';
import { ALGORITHMS } from './policy.js';

/** A key that signs. */
export type OpenKey = Omit<BackendKey, 'sign'> & {
  readonly config: SignerKeyConfig;
  /** Waits for its turn at the backend. Rejects with a SigningError after 2.5 s. */
  sign(data: Uint8Array): Promise<Uint8Array>;
};

/** A key that was opened, or why it was not. */
type Opened = { config: SignerKeyConfig; key?: OpenKey; error?: Error };

/** Below the 3 s after which the service counts a signing process as away. */
const TIMEOUT_MS = 2_500;
const OPEN_TIMEOUT_MS = 10_000;
const MAX_QUEUED = 10_000;

/** Opens all keys, side by side; a failure of one is no failure of another. */
export async function openKeys(
  { backends, keys }: { backends: readonly BackendConfig[]; keys: readonly SignerKeyConfig[] },
  hooks: Pick<ShutdownHooks, 'add'>,
): Promise<Opened[]> {
  const opened = backends
    .filter((backend) => keys.some((key) => key.backend === backend))
    .map(async (config): Promise<Opened[]> => {
      const own = keys.filter(({ backend }) => backend === config);
      try {
        const backend = await openBackend(config);
        hooks.add(backend.close);
        const run = limitConcurrency(
          { maxConcurrent: config.inFlight, maxQueued: MAX_QUEUED },
          () => new SigningError(`more than ${MAX_QUEUED} signatures wait for ${config.name}`),
        );
        return await Promise.all(own.map((key) => openKey({ backend, run }, key)));
      } catch (error) {
        return own.map((key) => ({ config: key, error: toError(error) }));
      }
    });
  return (await Promise.all(opened)).flat();
}

async function openBackend(config: BackendConfig): Promise<Backend> {
  switch (config.kind) {
    case 'pkcs11':
      return openPkcs11(config);
    case 'aws-kms':
      return openAwsKms(config);
    case 'gcp-kms':
      return openGcpKms(config);
    case 'azure-key-vault':
      return openAzureKeyVault(config);
    case 'vault-transit':
      return openVaultTransit(config);
  }
}

type Shared = { backend: Backend; run: ReturnType<typeof limitConcurrency> };

async function openKey({ backend, run }: Shared, config: SignerKeyConfig): Promise<Opened> {
  const { name } = config.backend;
  const bounded = async <T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const signal = AbortSignal.timeout(ms);
    // A call that cannot be stopped keeps its place until it ends.
    const running = run(async () => {
      signal.throwIfAborted();
      return work(signal);
    });
    return untilAborted(running, signal).catch((error) => {
      if (!signal.aborted || error instanceof SigningError) throw error;
      throw new SigningError(`${name} does not answer within ${ms / 1000} s`);
    });
  };
  try {
    const found = await bounded(OPEN_TIMEOUT_MS, (signal) => backend.open(config.reference, signal));
    const wanted = ALGORITHMS[config.purpose];
    if (found.algorithm !== wanted) {
      throw new SigningError(`it is a key of ${found.algorithm}; one for ${config.purpose} is of ${wanted}`);
    }
    const sign = (data: Uint8Array) => bounded(TIMEOUT_MS, (signal) => found.sign(data, signal));
    return { config, key: { ...found, config, sign } };
  } catch (error) {
    return { config, error: toError(error) };
  }
}

/** The keys. Throws ConfigError if a PIN is wrong, or an Error with a line for each key that cannot be used. */
export function assertOpened(opened: readonly Opened[]): OpenKey[] {
  const failed = opened.filter(({ error }) => error !== undefined);
  const rejected = failed.find(({ error }) => error instanceof CredentialRejected);
  // As a wrong setting: a supervisor that starts again what ended so would have the token locked.
  if (rejected?.error !== undefined) {
    const problem = `is wrong (${rejected.error.message})`;
    throw new ConfigError([{ name: 'SIGNER_CONFIG', problem, expected: 'the PIN of the token' }]);
  }
  if (failed.length > 0) {
    const lines = failed.map(
      ({ config, error }) => `${config.name} of ${config.backend.name}: ${error?.message}`,
    );
    throw new SigningError(lines.join('; '));
  }
  return opened.flatMap(({ key }) => key ?? []);
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
