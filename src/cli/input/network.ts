/** How commands reach a service. */
import { createEnvFetch } from '../../client/env-fetch.js';
import type { Env } from '../../config/settings.js';
import { UsageError } from '../cli.js';

/** The fetch that the environment asks for, with proxy and authorities. Throws UsageError if a value cannot be used. */
export function openFetch(env: Env): typeof globalThis.fetch {
  try {
    // In the bundled program a module in CommonJS has its exports in `default` alone.
    return createEnvFetch(env, async () => (await import('undici')).default) ?? globalThis.fetch;
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}
