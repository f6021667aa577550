/** The client of commands that call a service. */
import { type Client, createClient } from '../../client/client.js';
import type { AttestationError } from '../../client/error.js';
import { readClientConfig } from '../../config/client-config.js';
import { type Cli, printError, UsageError } from '../cli.js';
import { openFetch } from '../input/network.js';
import { errorText } from '../output/report-error.js';
import type { ClientFlags } from './client-flags.js';
import { readWithFlags } from './setting-flags.js';

/** Shorter delays are not reported. */
const MIN_REPORTED_DELAY_MS = 5_000;

/** Creates a client from flags and environment. Throws UsageError if the key is of another environment. */
export function openClient(cli: Cli, flags: ClientFlags): Client {
  const config = readWithFlags(cli.env, flags, (env) => readClientConfig(env, flags.environment ?? 'live'));
  const { environment } = flags;
  if (environment !== undefined && !config.apiKey.startsWith(`svc_${environment}_`)) {
    throw new UsageError(`the API key is not a key of the ${environment} environment`);
  }
  return createClient({
    ...config,
    fetch: openFetch(cli.env),
    onRetry: (error, delayMs) => reportRetry(cli, error, delayMs),
  });
}

/** Reports a long delay before a retry. */
export function reportRetry(cli: Cli, error: AttestationError, delayMs: number): void {
  if (delayMs < MIN_REPORTED_DELAY_MS) return;
  printError(cli, `retrying in ${Math.ceil(delayMs / 1000)} s: ${errorText(error)}`);
}
