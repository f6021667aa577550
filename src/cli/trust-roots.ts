/** Where a verification gets what it trusts from: never from the bundle. */
import { readFile } from 'node:fs/promises';
import { findVerifySource } from '../config/client-config.js';
import type { Env } from '../config/settings.js';
import { UsageError } from './cli.js';

/** The trust_roots.json document, parsed, and a sentence on where it is from. */
export type TrustRoots = { readonly document: unknown; readonly origin: string };

const MAX_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 15_000;

/** Trust roots of a file, or else of the service that flags or environment name. Throws when there are none to be had. */
export async function getTrustRoots(env: Env, file: string | undefined): Promise<TrustRoots> {
  if (file !== undefined) {
    return { document: parseDocument(await readFile(file, 'utf8'), file), origin: `the file ${file}` };
  }
  const source = findVerifySource(env);
  if (source === undefined) {
    throw new UsageError('there are no trust roots: give --trust-roots <file> or --verify-url <url>');
  }
  const url = `${source.url}/trust_roots.json`;
  const document = parseDocument(await fetchText(url), url);
  return {
    document,
    origin: `${url}, fetched now; its word is taken for whom to trust (address from ${source.from})`,
  };
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' }).catch(
    (error: Error) => {
      const { message } = error.cause instanceof Error && error.cause.message !== '' ? error.cause : error;
      throw new Error(`trust roots cannot be fetched from ${url}: ${message}`);
    },
  );
  if (!response.ok) throw new Error(`trust roots cannot be fetched from ${url}: HTTP ${response.status}`);
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    if (size > MAX_BYTES) throw new Error(`trust roots at ${url} are larger than 4 MiB`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function parseDocument(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`trust roots in ${from} are not JSON`);
  }
}
