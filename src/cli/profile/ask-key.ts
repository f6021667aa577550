import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { apiKey } from '../../config/client-config.js';
import { type Cli, UsageError } from '../cli.js';

const MAX_CHARACTERS = 1024;
const EXIT_SIGINT = 130;

/**
 * Reads an API key: typed at a terminal, without echo, or with `isPiped` all of standard input. Throws UsageError if it is not
 * an API key, and Error with exit code 130 after Ctrl-C.
 */
export async function askKey(cli: Cli, url: string, { isPiped }: { isPiped: boolean }): Promise<string> {
  if (!isPiped && cli.stdin.isTTY !== true)
    throw new UsageError('stdin is not a terminal: pipe the key into `attest login --api-key-stdin`');
  const text = (
    isPiped ? await readAll(cli) : await readHidden(cli, `API key for ${url} (not shown): `)
  ).trim();
  if (text === '') throw new UsageError('no API key was given');
  try {
    return apiKey.parse(text);
  } catch {
    throw new UsageError(`this is not an API key: it is cut off or mistyped, expected ${apiKey.expected}`);
  }
}

async function readAll({ stdin }: Cli): Promise<string> {
  let text = '';
  for await (const piece of stdin) {
    text += piece;
    if (text.length > MAX_CHARACTERS) throw new UsageError('standard input is too long for an API key');
  }
  return text;
}

/** One line from the terminal. Readline turns its echo off and edits the line on an output that nobody sees. */
function readHidden(cli: Cli, question: string): Promise<string> {
  const output = new Writable({ write: (_piece, _encoding, done) => done() });
  const lines = createInterface({ input: cli.stdin, output, terminal: true, historySize: 0 });
  // Only now, with the echo off: a key is typed or pasted as soon as it is asked for.
  cli.stderr.write(question);
  return new Promise((resolve, reject) => {
    lines.once('SIGINT', () => {
      cli.exitCode = EXIT_SIGINT;
      reject(new Error('interrupted: nothing was kept'));
      lines.close();
    });
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => {
      cli.stderr.write('\n');
      resolve('');
    });
  });
}
