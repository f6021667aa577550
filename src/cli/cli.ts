/** What every command works with. */
import type { Command } from 'commander';
import type { Env } from '../config/settings.js';

/** Where output goes; a terminal says so and how wide it is. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Where answers come from; a terminal says so. */
export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** The process as a command sees it. */
export type Cli = {
  readonly env: Env;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly now: () => Date;
  /** How this program was called, to be shown in commands to paste. */
  readonly self: string;
  /** What the process ends with: 0 done, 1 refused or failed, 2 not tried or not decidable. */
  exitCode: number;
};

/** Adds one command to the program. */
export type AddCommand = (program: Command, cli: Cli) => void;

/** A command that was called wrongly. */
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

/**
 * Text from outside as a terminal may show it: control characters and those that turn the writing direction, with
 * which it could pose as something else, become U+FFFD.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu, '\uFFFD');
}
