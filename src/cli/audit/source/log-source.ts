/** A place that serves a log, or its checkpoint only: the log itself, a mirror, or a witness. */
import { setTimeout as pause } from 'node:timers/promises';
import { toHex, utf8 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import { decodeEntries, firstEntries } from '../../../proof/log/entries.js';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import { MAX_NOTE_BYTES } from '../../../proof/log/note.js';
import type { TileRef } from '../../../proof/log/tile.js';
import { TILE_WIDTH, type TileAddress, tilePath } from '../../../proof/log/tile-path.js';
import { boundedRequest, WitnessRequestError } from '../../../server/witnessing/clients/bounded-request.js';

/** `name` is for messages. `tiles` is the URL above `tile/`; witnesses have none. */
export type LogSource = {
  readonly name: string;
  readonly checkpoint: string;
  readonly tiles?: string;
};

/**
 * How files are fetched. A failed request, 429 or 5xx is retried after each of `retryDelaysMs`. `timeoutMs` is from the
 * start of a request to the last byte of the response.
 */
export type Net = {
  readonly signal: AbortSignal;
  readonly retryDelaysMs: readonly number[];
  readonly timeoutMs: number;
};

/** A source did not respond, or not with a file. It says nothing about the log. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

const MIB = 1024 * 1024;

/** 256 entries of at most 65,535 bytes, each with a 2-byte length prefix. */
const MAX_ENTRIES_BYTES = TILE_WIDTH * 65_537;

/** A log, or a mirror of it, below `url` (C2SP tlog-tiles). */
export function tiledSource(name: string, url: string): LogSource {
  return { name, checkpoint: `${url}/checkpoint`, tiles: url };
}

/** The monitoring endpoint of a witness for one log (C2SP tlog-witness). */
export function witnessSource(url: string, origin: string): LogSource {
  return { name: `the witness ${url}`, checkpoint: `${url}/${toHex(sha256(utf8(origin)))}/checkpoint` };
}

/** Fetches the checkpoint that a source shows now; undefined if it has none. Throws SourceError, or FormatError. */
export function fetchCheckpoint(net: Net, source: LogSource): Promise<Uint8Array | undefined> {
  return fetchFile(net, source.checkpoint, { what: 'the checkpoint', maxBytes: MAX_NOTE_BYTES });
}

/** Fetches a bundle of entries of exactly that width. Throws SourceError, or FormatError if there is none. */
export async function fetchEntries(net: Net, source: LogSource, address: TileAddress): Promise<Uint8Array> {
  const file = { what: 'entries', maxBytes: MAX_ENTRIES_BYTES };
  const { bytes, isWider } = await fetchTileFile(net, source, address, file);
  if (!isWider) return bytes;
  const { width } = address;
  if (decodeEntries(bytes).length < width)
    throw new FormatError(`${tilePath(address)} holds too few entries`);
  return firstEntries(bytes, width);
}

/** Fetches the hashes of a tile of exactly that width. Throws SourceError, or FormatError if there is none. */
export async function fetchTile(net: Net, source: LogSource, address: TileRef): Promise<Uint8Array> {
  const file = { what: 'a tile', maxBytes: TILE_WIDTH * HASH_BYTES };
  const { bytes, isWider } = await fetchTileFile(net, source, address, file);
  const hashes = isWider ? bytes.subarray(0, address.width * HASH_BYTES) : bytes;
  if (hashes.length !== address.width * HASH_BYTES)
    throw new FormatError(`${tilePath(address)} does not hold ${address.width} hashes`);
  return hashes;
}

/** A log may remove a partial tile once the full one is there (C2SP tlog-tiles, "Partial Tiles"). */
async function fetchTileFile(
  net: Net,
  { tiles }: LogSource,
  address: TileAddress,
  file: File,
): Promise<{ bytes: Uint8Array; isWider: boolean }> {
  const bytes = await fetchFile(net, `${tiles}/${tilePath(address)}`, file);
  if (bytes !== undefined) return { bytes, isWider: false };
  const full =
    address.width === TILE_WIDTH
      ? undefined
      : await fetchFile(net, `${tiles}/${tilePath({ ...address, width: TILE_WIDTH })}`, file);
  if (full === undefined)
    throw new FormatError(`it has no ${tilePath(address)}, which its checkpoint covers`);
  return { bytes: full, isWider: true };
}

type File = { readonly what: string; readonly maxBytes: number };

async function fetchFile(net: Net, url: string, file: File): Promise<Uint8Array | undefined> {
  for (const waitMs of net.retryDelaysMs) {
    const found = await get(net, url, file).catch((error: Error) => error);
    if (!(found instanceof Transient)) return settle(found);
    await pause(waitMs, undefined, { signal: net.signal }).catch(() => {});
    if (net.signal.aborted) break;
  }
  return get(net, url, file);
}

function settle(found: Uint8Array | undefined | Error): Uint8Array | undefined {
  if (found instanceof Error) throw found;
  return found;
}

/** May be different a moment later. */
class Transient extends SourceError {}

/** Asks for the bytes as they are: what is compressed nonetheless is not decompressed, and so not a file of the log. */
async function get(
  { signal, timeoutMs }: Net,
  url: string,
  { what, maxBytes }: File,
): Promise<Uint8Array | undefined> {
  const answer = await boundedRequest(
    {},
    { url, method: 'GET', headers: { 'cache-control': 'no-cache' }, timeoutMs, maxBytes },
    signal,
  ).catch((error: unknown) => {
    if (!(error instanceof WitnessRequestError)) throw error;
    if (error.code === 'too_large')
      throw new FormatError(`${what} at ${url}: larger than ${sizeText(maxBytes)}`);
    throw new Transient(`${what} cannot be fetched from ${url}: ${error.message}`);
  });
  const { status, body } = answer;
  if (status === 200) return body;
  if (status === 404) return undefined;
  const message = `${what} cannot be fetched from ${url}: HTTP ${status}`;
  throw status === 429 || status >= 500 ? new Transient(message) : new SourceError(message);
}

function sizeText(bytes: number): string {
  return bytes < MIB ? `${bytes / 1024} KiB` : `${Math.ceil(bytes / MIB)} MiB`;
}
