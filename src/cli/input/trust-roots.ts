/** Where a verification gets what it trusts from: never from the bundle. */
import { findVerifySource } from '../../config/client-config.js';
import type { Env } from '../../config/settings.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { parseJsonText } from '../../proof/verify/json-text.js';
import { fetchPublished } from '../audit/fetch-published.js';
import { UsageError } from '../cli.js';
import { flagOrSettingName, readWithFlags, type SettingFlags } from '../flags/setting-flags.js';
import { readInputFile } from './input-file.js';

/** The trust_roots.json document, parsed, and a sentence on where it is from. */
type TrustRoots = { readonly document: unknown; readonly origin: string };

/** Flags that say where they are from. */
type TrustFlags = SettingFlags & { readonly trustRoots?: string };

const MAX_BYTES = 4 * 1024 * 1024;

/** Trust roots of a file, or else of the service that flags or environment name. Throws when there are none to be had. */
export async function getTrustRoots(env: Env, flags: TrustFlags): Promise<TrustRoots> {
  const { trustRoots: file } = flags;
  if (file !== undefined) {
    const bytes = await readInputFile(file, 'trust roots', MAX_BYTES);
    return { document: parseDocument(bytes, file), origin: `the file ${file}` };
  }
  const source = readWithFlags(env, flags, findVerifySource);
  if (source === undefined) {
    throw new UsageError('there are no trust roots: give --trust-roots <file> or --verify-url <url>');
  }
  const url = `${source.url}/trust_roots.json`;
  const document = parseDocument(await fetchDocument(url), url);
  return {
    document,
    origin: `${url}, fetched now; its word is taken for whom to trust (address from ${flagOrSettingName(source.from, flags)})`,
  };
}

async function fetchDocument(url: string): Promise<Uint8Array> {
  const bytes = await fetchPublished(url, { what: 'trust roots', maxBytes: MAX_BYTES });
  if (bytes === undefined) throw new Error(`trust roots cannot be fetched from ${url}: HTTP 404`);
  return bytes;
}

function parseDocument(bytes: Uint8Array, from: string): unknown {
  try {
    return parseJsonText(bytes, MAX_BYTES);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new Error(`trust roots in ${from} are not JSON that can be trusted: the text ${error.message}`);
  }
}
