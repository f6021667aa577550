/** Where a verification gets what it trusts from: never from the bundle. */
import { readFile } from 'node:fs/promises';
import { findVerifySource } from '../config/client-config.js';
import type { Env } from '../config/settings.js';
import { UsageError } from './cli.js';
import { fetchPublished } from './fetch-published.js';

/** The trust_roots.json document, parsed, and a sentence on where it is from. */
export type TrustRoots = { readonly document: unknown; readonly origin: string };

const MAX_BYTES = 4 * 1024 * 1024;

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
  const bytes = await fetchPublished(url, { what: 'trust roots', maxBytes: MAX_BYTES });
  if (bytes === undefined) throw new Error(`trust roots cannot be fetched from ${url}: HTTP 404`);
  return Buffer.from(bytes).toString('utf8');
}

function parseDocument(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`trust roots in ${from} are not JSON`);
  }
}
