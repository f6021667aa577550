/** Loads the trust roots of a verification; they never come from the bundle. */
import { basename } from 'node:path';
import { findVerifySource } from '../../config/client-config.js';
import type { Env } from '../../config/settings.js';
import { fromUtf8 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { parseJsonText } from '../../proof/verify/read/json-text.js';
import { readTrust, type Trust } from '../../proof/verify/trust.js';
import { fetchPublished } from '../audit/source/fetch-published.js';
import { UsageError } from '../cli.js';
import { flagOrSettingName, readWithFlags, type SettingFlags } from '../flags/setting-flags.js';
import { envBesideProfile, profileSource } from '../profile/find-profile.js';
import { readInputFile } from './input-file.js';
import { openFetch } from './network.js';

/** trust_roots.json parsed and as text, its file name or URL, and a phrase that names its source. */
type TrustRoots = {
  readonly document: unknown;
  readonly text: string;
  readonly from: string;
  readonly origin: string;
};

/** Flags that select the source of trust roots. */
type TrustFlags = SettingFlags & { readonly trustRoots?: string; readonly profile?: string };

const MAX_BYTES = 4 * 1024 * 1024;

/** Reads trust roots from --trust-roots, else from the service. Throws UsageError if neither is given, else Error. */
export async function getTrustRoots(env: Env, flags: TrustFlags): Promise<TrustRoots> {
  const { trustRoots: file } = flags;
  if (file !== undefined) {
    const bytes = await readInputFile(file, 'trust roots', MAX_BYTES);
    return { ...parseDocument(bytes, file), from: basename(file), origin: `the file ${file}` };
  }
  const source = readWithFlags(envBesideProfile(env, flags), flags, (settings) =>
    findVerifySource(settings, profileSource(env, flags)),
  );
  if (source === undefined) {
    throw new UsageError('there are no trust roots: give --trust-roots <file> or --verify-url <url>');
  }
  const { url, bytes } = await fetchDocument(openFetch(env), source.url);
  return {
    ...parseDocument(bytes, url),
    from: url,
    origin: `${url}, fetched now and trusted as served (address from ${flagOrSettingName(source.from, flags)})`,
  };
}

/** Where a service publishes below its own address. */
const PUBLIC_PATH = '/verify';
const FILE = '/trust_roots.json';

/** Fetches the trust roots at an address, or below that of the service itself. */
async function fetchDocument(
  fetch: typeof globalThis.fetch,
  base: string,
): Promise<{ url: string; bytes: Uint8Array }> {
  for (const url of [`${base}${FILE}`, `${base}${PUBLIC_PATH}${FILE}`]) {
    const bytes = await fetchPublished(url, { what: 'trust roots', maxBytes: MAX_BYTES, fetch });
    if (bytes !== undefined) return { url, bytes };
  }
  const problem = `trust roots cannot be fetched from ${base}${FILE}: HTTP 404`;
  throw new Error(`${problem}, nor from ${base}${PUBLIC_PATH}${FILE}: give the verify URL of the service`);
}

function parseDocument(bytes: Uint8Array, from: string): Pick<TrustRoots, 'document' | 'text'> {
  try {
    return { document: parseJsonText(bytes, MAX_BYTES), text: fromUtf8(bytes) };
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new Error(`trust roots in ${from} are not valid JSON: the text ${error.message}`);
  }
}

/** The trust of the document trust_roots.json. Throws UsageError with its first problem if it cannot be used. */
export function readTrusted(document: unknown): Trust {
  const { trust, problems } = readTrust(document);
  if (trust !== undefined) return trust;
  const [first] = problems;
  throw new UsageError(`the trust roots cannot be read: ${first?.path || 'the document'} ${first?.message}`);
}
