/** The process as commands see it, and how they print. */
import type { Command } from 'commander';
import type { Env } from '../config/settings.js';

/** An output stream; `isTTY` and `columns` are set on a terminal. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** An input stream; `isTTY` is set on a terminal. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** The process as a command sees it. */
export type Cli = {
  readonly env: Env;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly now: () => Date;
  /** The command that runs this program, for commands printed to be pasted. */
  readonly self: string;
  /** Exit code: 0 done, 1 refused or failed, 2 not attempted or not decidable. */
  exitCode: number;
  /** The service that the command calls, for errors. */
  service?: UsedService;
};

/** Address and shortened API key of a service, each with the flag, setting or file that it comes from. */
export type UsedService = {
  readonly url: string;
  readonly urlFrom: string;
  readonly key: string;
  readonly keyFrom: string;
};

/** Adds one command to the program. */
export type AddCommand = (program: Command, cli: Cli) => void;

/** What adds each command, by its name. A module is imported only when its command is called. */
export type Commands = ReadonlyMap<string, () => Promise<AddCommand>>;

/** Wrong arguments or unusable input; the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Writes a line to standard output. */
export function print(cli: Cli, line: string): void {
  cli.stdout.write(`${line}\n`);
}

/** Writes a line to standard error. */
export function printError(cli: Cli, line: string): void {
  cli.stderr.write(`${line}\n`);
}
