/** How commands that read print what they read: as a table, as one JSON document, or as a line of JSON for each item. */
import { once } from 'node:events';
import { styleText } from 'node:util';
import { type Command, Option } from 'commander';
import { type Cli, UsageError } from '../cli.js';
import { formatTable } from './table.js';

const FORMATS = ['table', 'json', 'ndjson'] as const;

type Format = (typeof FORMATS)[number];

/** The flags of `addOutputFlags`. */
export type OutputFlags = { output?: Format; json?: boolean };

/** Help text about them. */
export const OUTPUT_HELP = `
--output json prints one document, an array for a list; ndjson a line for each item, as it arrives. Members are those of
the REST API, times are in UTC. Colours are for terminals only, and not with NO_COLOR or TERM=dumb.`;

/** Columns of a list: the head, the cells of an item, and its JSON. Cells must be printable. */
export type Columns<T> = {
  readonly head: readonly string[];
  readonly cells: (item: T) => readonly string[];
  readonly json: (item: T) => string;
};

/** Rows of a table are aligned this many at a time, or the lines of a long list would wait for its end. */
const ROWS = 100;

const COLOURS: ReadonlyMap<string, Parameters<typeof styleText>[0]> = new Map([
  ['witnessed', 'green'],
  ['landed', 'green'],
  ['partial', 'yellow'],
  ['failed', 'red'],
  ['not found', 'red'],
]);

/** Adds `--output`, and `--json` as its short form. */
export function addOutputFlags(command: Command): Command {
  return command
    .addOption(new Option('--output <format>', 'format of the output (default: table)').choices(FORMATS))
    .option('--json', 'the same as --output json');
}

/** The format that the flags ask for. Throws UsageError if they contradict each other. */
function outputFormat({ output, json }: OutputFlags): Format {
  if (json && output !== undefined && output !== 'json')
    throw new UsageError(`--json and --output ${output} are mutually exclusive`);
  return output ?? (json ? 'json' : 'table');
}

/** Prints one item: its JSON, or `text()`. */
export function printItem(
  cli: Cli,
  flags: OutputFlags,
  item: { json: () => string; text: () => string },
): void {
  cli.stdout.write(`${outputFormat(flags) === 'table' ? item.text() : item.json()}\n`);
}

/** Prints a list as its items arrive. Returns how many there are. A table of none is a line on standard error. */
export async function printList<T>(
  cli: Cli,
  flags: OutputFlags,
  items: AsyncIterable<T> | Iterable<T>,
  columns: Columns<T>,
): Promise<number> {
  const format = outputFormat(flags);
  if (format === 'table') return printTable(cli, items, columns);
  let count = 0;
  for await (const item of items) {
    const before = format === 'ndjson' ? '' : count === 0 ? '[' : ',\n';
    await write(cli, `${before}${columns.json(item)}${format === 'ndjson' ? '\n' : ''}`);
    count++;
  }
  if (format === 'json') await write(cli, count === 0 ? '[]\n' : ']\n');
  return count;
}

async function printTable<T>(
  cli: Cli,
  items: AsyncIterable<T> | Iterable<T>,
  { head, cells }: Columns<T>,
): Promise<number> {
  const widths: number[] = [];
  let count = 0;
  let rows = [head];
  const flush = async () => {
    if (rows.length > 0) await write(cli, `${formatTable(rows, { widths, paint: painter(cli) })}\n`);
    rows = [];
  };
  for await (const item of items) {
    rows.push(cells(item));
    count++;
    if (rows.length >= ROWS) await flush();
  }
  if (count === 0) cli.stderr.write('none\n');
  else await flush();
  return count;
}

/** A status in its colour, on a terminal that has colours. */
export function painter({ stdout, env }: Cli): (text: string) => string {
  const hasColours = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (text) => {
    const colour = hasColours ? COLOURS.get(text.trim()) : undefined;
    return colour === undefined ? text : styleText(colour, text, { validateStream: false });
  };
}

/** Waits while the reader of the output is behind, so that a long list is not kept in memory. */
async function write({ stdout }: Cli, text: string): Promise<void> {
  if (!stdout.write(text)) await once(stdout, 'drain');
}
