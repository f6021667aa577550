/** Headers of Bitcoin blocks by height, from a block explorer with the HTTP API of Esplora. */
import { fromHex } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { parseBlockHeader } from '../../../proof/opentimestamps/block-header.js';
import { boundedRequest, type RequestDeps, WitnessRequestError } from './bounded-request.js';

/** `url` is the base of the API, without a slash at the end. */
type ExplorerConfig = { readonly url: string; readonly timeoutMs: number };

const MAX_ANSWER_BYTES = 1_024;

/** Fetches the header of the block at `height`, 80 bytes. Throws WitnessRequestError, also if its proof of work is invalid. */
export async function fetchBlockHeader(
  deps: RequestDeps,
  config: ExplorerConfig,
  height: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const hash = await fetchHex(deps, config, `block-height/${height}`, 32, signal);
  const text = await fetchHex(deps, config, `block/${hash}/header`, 80, signal);
  const header = fromHex(text, 80);
  try {
    if (parseBlockHeader(header).hash === hash) return header;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw malformed(config, error.message);
  }
  throw malformed(config, 'it answered with the header of another block');
}

async function fetchHex(
  deps: RequestDeps,
  config: ExplorerConfig,
  path: string,
  bytes: number,
  signal: AbortSignal,
): Promise<string> {
  const { url, timeoutMs } = config;
  const wanted = { url: `${url}/${path}`, method: 'GET', timeoutMs, maxBytes: MAX_ANSWER_BYTES } as const;
  const { status, body } = await boundedRequest(deps, wanted, signal);
  const { host } = new URL(url);
  if (status !== 200) throw new WitnessRequestError('http_status', `${host}: HTTP ${status} for ${path}`);
  const text = Buffer.from(body).toString('latin1').trim();
  if (text.length !== 2 * bytes || !/^[0-9a-f]+$/.test(text)) throw malformed(config, `no hex for ${path}`);
  return text;
}

function malformed({ url }: ExplorerConfig, problem: string): WitnessRequestError {
  return new WitnessRequestError('malformed', `${new URL(url).host}: ${problem}`);
}
