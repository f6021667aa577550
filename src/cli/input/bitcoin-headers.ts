/** Headers of Bitcoin blocks that the user trusts, for the evidence of OpenTimestamps. */
import { fromHex } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { parseBlockHeader } from '../../proof/opentimestamps/block-header.js';
import { withoutByteOrderMark } from '../../protocol/byte-order-mark.js';
import { UsageError } from '../cli.js';
import { readInputFile } from './input-file.js';

/** `bitcoinHeader`: `<height>:<hex>` each; `bitcoinHeaders`: a file of lines `<height> <hex>`. */
export type BitcoinFlags = { readonly bitcoinHeader?: readonly string[]; readonly bitcoinHeaders?: string };

/** About 90,000 headers. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** Reads the headers that the flags give, by height. Throws UsageError if one is invalid or two differ. */
export async function readBitcoinHeaders(flags: BitcoinFlags): Promise<ReadonlyMap<number, Uint8Array>> {
  const headers = new Map<number, Uint8Array>();
  for (const text of flags.bitcoinHeader ?? []) addHeader(headers, '--bitcoin-header', text);
  const { bitcoinHeaders: file } = flags;
  if (file === undefined) return headers;
  const content = await readInputFile(file, 'block headers', MAX_FILE_BYTES);
  const lines = withoutByteOrderMark(Buffer.from(content).toString()).split(/\r?\n/);
  for (const [i, line] of lines.entries()) {
    if (line.trim() !== '') addHeader(headers, `line ${i + 1} of ${file}`, line.trim());
  }
  return headers;
}

function addHeader(headers: Map<number, Uint8Array>, where: string, text: string): void {
  const [, height, hex] = /^(\d{1,9})[:\s]\s*([0-9a-fA-F]{160})$/.exec(text) ?? [];
  if (height === undefined || hex === undefined) {
    throw new UsageError(`${where} is not a height and a block header of 80 bytes in hex`);
  }
  const header = fromHex(hex.toLowerCase(), 80);
  try {
    parseBlockHeader(header);
  } catch (error) {
    if (error instanceof FormatError) throw new UsageError(`${where}: ${error.message}`);
    throw error;
  }
  const known = headers.get(Number(height));
  if (known !== undefined && !equalBytes(known, header)) {
    throw new UsageError(`${where} has another header for block ${height}`);
  }
  headers.set(Number(height), header);
}
