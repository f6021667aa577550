/** Ctrl-C while a command has something to finish. */
import { type Cli, printError } from '../cli.js';

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Aborted by the first signal to stop; a second one ends the process. */
type Interruption = {
  readonly signal: AbortSignal;
  /** Sets the exit code of the signal if there was one, and lets signals end the process again. */
  end(): void;
};

/** Has SIGINT and SIGTERM abort a signal until `end`; then `notice` is printed. */
export function onInterruption(cli: Cli, notice: string): Interruption {
  const stopping = new AbortController();
  let code: number | undefined;
  const stop = (name: NodeJS.Signals) => {
    const own = EXIT_CODES[name as keyof typeof EXIT_CODES];
    if (code !== undefined) process.exit(own);
    code = own;
    printError(cli, notice);
    stopping.abort();
  };
  for (const name of Object.keys(EXIT_CODES)) process.on(name, stop);
  return {
    signal: stopping.signal,
    end: () => {
      for (const name of Object.keys(EXIT_CODES)) process.off(name, stop);
      cli.exitCode = code ?? cli.exitCode;
    },
  };
}
