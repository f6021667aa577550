import { createInterface } from 'node:readline';
import { type Cli, UsageError } from '../cli.js';

/**
 * Asks for confirmation on the terminal. Throws Error unless the answer is yes, and UsageError, which names `flag`, if
 * stdin is not a terminal.
 */
export async function confirm(cli: Cli, question: string, flag: string): Promise<void> {
  if (cli.stdin.isTTY !== true) throw new UsageError(`stdin is not a terminal: confirm with ${flag}`);
  cli.stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: cli.stdin });
  let answer = '';
  for await (const line of lines) {
    answer = line;
    break;
  }
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new Error('not confirmed: nothing was changed');
}
