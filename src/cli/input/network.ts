/** How commands reach a service. */
import { createEnvFetch } from '../../client/env-fetch.js';
import { certificateHint, failureReason } from '../../client/error.js';
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

/** Why a fetch failed, with advice of its certificate. */
export function networkReason(error: Error): string {
  return [failureReason(error), certificateHint(error)].filter(Boolean).join(': ');
}

/** Reads the body of a response; undefined, and the rest is not read, if it is larger than `maxBytes`. */
export async function readAtMost(
  { body }: Response,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body ?? []) {
    size += piece.length;
    if (size > maxBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
