import { createInterface } from 'node:readline';
import { type Cli, UsageError } from '../cli.js';

/**
 * Asks at the terminal whether to go on, and throws unless the answer is yes. Without a terminal nobody can be asked:
 * then it throws UsageError and names the flag that says so beforehand.
 */
export async function confirm(cli: Cli, question: string, flag: string): Promise<void> {
  if (cli.stdin.isTTY !== true) throw new UsageError(`there is no terminal to ask at: say ${flag}`);
  cli.stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: cli.stdin });
  let answer = '';
  for await (const line of lines) {
    answer = line;
    break;
  }
  if (!/^\s*y(?:es)?\s*$/i.test(answer)) throw new Error('not confirmed: nothing was changed');
}
