/** Lists of files, given as text in a file or on standard input. */
import { type Cli, UsageError } from '../cli.js';
import { readInputFile } from '../input/input-file.js';
import { standardInput } from '../input/standard-input.js';

/** The name of standard input. */
export const STDIN = '-';

/** As long as a path of Linux may be, and escaped. */
const MAX_LINE_BYTES = 10_000;
const MAX_BYTES = 256 * 1024 * 1024;
const [NEWLINE, NUL] = [10, 0];

/** A line, without its end, and its number from 1. */
export type Line = { readonly text: string; readonly number: number };

/**
 * Reads the lines of a list that are not empty, of at most 256 MiB. `end` is what ends a line. Throws UsageError, which names
 * the line, if one is too long or not UTF-8.
 */
export async function readLinesOf(
  cli: Cli,
  file: string,
  { flag, end }: { flag: string; end: 'newline' | 'NUL' },
): Promise<Line[]> {
  const name = file === STDIN ? 'standard input' : file;
  const bytes =
    file === STDIN ? await readStandardInput(cli, flag) : await readInputFile(file, flag, MAX_BYTES);
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const mark = end === 'NUL' ? NUL : NEWLINE;
  const lines: Line[] = [];
  let number = 0;
  for (let at = 0; at < bytes.length; ) {
    const found = bytes.indexOf(mark, at);
    const until = found === -1 ? bytes.length : found;
    const line = bytes.subarray(at, until);
    at = until + 1;
    number++;
    if (line.length === 0) continue;
    if (line.length > MAX_LINE_BYTES) throw wrongLine(name, number, `is longer than ${MAX_LINE_BYTES} bytes`);
    if (line.includes(NUL)) throw wrongLine(name, number, 'has a NUL: names that end with one need --null');
    try {
      lines.push({ text: decoder.decode(line), number });
    } catch {
      throw wrongLine(name, number, 'is not UTF-8');
    }
  }
  return lines;
}

/** The error that a line is wrong; `problem` as in `is not UTF-8`. */
export function wrongLine(file: string, number: number, problem: string): UsageError {
  return new UsageError(`${file === STDIN ? 'standard input' : file}: line ${number} ${problem}`);
}

async function readStandardInput(cli: Cli, flag: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of standardInput(cli)) {
    length += piece.length;
    if (length > MAX_BYTES) throw new UsageError(`standard input is too large for ${flag}: over 256 MiB`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
