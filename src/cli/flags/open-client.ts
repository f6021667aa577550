/** The client of commands that call a service. */
import { type Client, createClient } from '../../client/client.js';
import type { AttestationError } from '../../client/error.js';
import { readBaseUrl, readClientConfig } from '../../config/client-config.js';
import type { Env } from '../../config/settings.js';
import { type Cli, printError, UsageError } from '../cli.js';
import { getJobToken } from '../input/job-token.js';
import { openFetch } from '../input/network.js';
import { errorText } from '../output/report-error.js';
import { envBesideProfile, profileSource, shownKey } from '../profile/find-profile.js';
import type { ClientFlags } from './client-flags.js';
import { flagOrSettingName, readWithFlags } from './setting-flags.js';

/** Shorter delays are not reported. */
const MIN_REPORTED_DELAY_MS = 5_000;

/** Creates a client from flags, environment and profiles, or the token of a CI job. Throws UsageError if the key is of another environment. */
export function openClient(cli: Cli, flags: ClientFlags): Client {
  const { baseUrl, apiKey, token, urlFrom, keyFrom } = findService(cli.env, flags);
  const key = apiKey === undefined ? 'exchanged' : shownKey(apiKey);
  cli.service = { url: baseUrl, urlFrom, key, keyFrom };
  const { environment } = flags;
  if (environment !== undefined && apiKey?.startsWith(`svc_${environment}_`) === false) {
    throw new UsageError(`the API key of ${keyFrom} is not a key of the ${environment} environment`);
  }
  const fetch = openFetch(cli.env);
  return createClient({
    baseUrl,
    fetch,
    ...(apiKey === undefined
      ? { identityToken: () => getJobToken(fetch, token), projectId: token.projectId, environment }
      : { apiKey }),
    onRetry: (error, delayMs) => reportRetry(cli, error, delayMs),
  });
}

/**
 * Address and API key by --url and --api-key, else those of --profile, else ATTEST_URL and ATTEST_API_KEY, else a profile or the
 * credentials of `attest up`, else the token of the CI job. Names where each comes from. Throws ConfigError, and UsageError for a profile.
 */
export function findService(env: Env, flags: ClientFlags): ReturnType<typeof readClientConfig> {
  const { environment = 'live' } = flags;
  const read = (settings: Env) => readClientConfig(settings, environment, profileSource(env, flags));
  const { urlFrom, keyFrom, ...found } = readWithFlags(envBesideProfile(env, flags), flags, read);
  return {
    ...found,
    urlFrom: flagOrSettingName(urlFrom, flags),
    keyFrom: flagOrSettingName(keyFrom, flags),
  };
}

/** The address alone, from the same places, for calls without a key. Throws ConfigError, and UsageError for a profile. */
export function findAddress(env: Env, flags: ClientFlags): ReturnType<typeof readBaseUrl> {
  const { baseUrl, urlFrom } = readWithFlags(envBesideProfile(env, flags), flags, (settings) =>
    readBaseUrl(settings, profileSource(env, flags)),
  );
  return { baseUrl, urlFrom: flagOrSettingName(urlFrom, flags) };
}

/** Reports a long delay before a retry. */
export function reportRetry(cli: Cli, error: AttestationError, delayMs: number): void {
  if (delayMs < MIN_REPORTED_DELAY_MS) return;
  printError(cli, `retrying in ${Math.ceil(delayMs / 1000)} s: ${errorText(error)}`);
}
