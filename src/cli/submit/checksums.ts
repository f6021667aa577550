/** Files of checksums, as `sha256sum` and `shasum -a 256` write them, and BSD's `sha256` with --tag. */
import { type Line, wrongLine } from './lines.js';

/** A file as a line has it; it need not be there. SHA-256 in lower-case hex. */
export type Checksum = { readonly name: string; readonly sha256: string };

/** `<digest>  <name>`; the second character says text or binary, which are the same. */
const PLAIN = /^(?<escaped>\\?)(?<digest>[0-9a-f]+) [ *](?<name>.+)$/is;
/** `SHA256 (<name>) = <digest>`. The name may have `) = ` in it. */
const TAGGED = /^(?<escaped>\\?)(?<algorithm>[A-Z0-9-]+) \((?<name>.+)\) = (?<digest>[0-9a-f]+)$/is;
const HEX_DIGITS = 64;
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\\\', '\\'],
  ['\\n', '\n'],
  ['\\r', '\r'],
]);

/** Parses the lines; one that begins with `#` is a comment. Throws UsageError, which names `file` and the line. */
export function parseChecksums(file: string, lines: readonly Line[]): Checksum[] {
  return lines.flatMap((line) => parseLine(file, line) ?? []);
}

function parseLine(file: string, { text, number }: Line): Checksum | undefined {
  // Names with a carriage return are escaped: one at the end is Windows'.
  const line = text.endsWith('\r') ? text.slice(0, -1) : text;
  if (line === '' || line.startsWith('#')) return undefined;
  const { escaped, algorithm, name, digest } = (PLAIN.exec(line) ?? TAGGED.exec(line))?.groups ?? {};
  if (name === undefined || digest === undefined) {
    throw wrongLine(
      file,
      number,
      'is not a checksum: <64 hex digits>  <name>, or SHA256 (<name>) = <digits>',
    );
  }
  if (algorithm !== undefined && !/^SHA-?256$/i.test(algorithm)) {
    throw wrongLine(
      file,
      number,
      `has a checksum by ${algorithm.slice(0, 20)}: only SHA256 can be submitted`,
    );
  }
  if (digest.length !== HEX_DIGITS) {
    throw wrongLine(file, number, `has ${digest.length} hex digits: a SHA-256 has ${HEX_DIGITS}`);
  }
  const plain = escaped === '' ? name : unescapeName(name);
  if (plain === undefined) throw wrongLine(file, number, 'has a backslash that escapes nothing');
  if (/(?:^|\/)\.{0,2}$/.test(plain)) throw wrongLine(file, number, 'names a folder, not a file');
  return { name: plain, sha256: digest.toLowerCase() };
}

/** The name of an escaped line; undefined if it has another escape than those of coreutils. */
function unescapeName(name: string): string | undefined {
  let isWrong = false;
  const plain = name.replace(/\\(?:.|$)/gs, (pair) => {
    const character = ESCAPES.get(pair);
    isWrong ||= character === undefined;
    return character ?? '';
  });
  return isWrong ? undefined : plain;
}
