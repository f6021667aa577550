/** What the programs did, as a table. */
import type { Said } from './command.js';

/** One program and one thing it was given; `throws` is of a check that could not be made. */
export type Row = {
  tool: string;
  what: string;
  does: 'accepts' | 'refuses' | 'throws';
  isRight: boolean;
  said: string;
};

/** The row of a program that must accept, and say so; it must print all of `says`. */
export function accepting(tool: string, what: string, { code, output }: Said, says: readonly RegExp[]): Row {
  const isRight = code === 0 && says.every((pattern) => pattern.test(output));
  return { tool, what, does: code === 0 ? 'accepts' : 'refuses', isRight, said: output };
}

/**
 * The row of a program that must refuse; it must print all of `says`. One that cannot be run at all, or crashes, is not taken for
 * one that refuses.
 */
export function refusing(
  tool: string,
  what: string,
  { code, output }: Said,
  says: readonly RegExp[] = [],
): Row {
  const isCrash =
    code === null || code > 125 || /^panic: |command not found|no such file|ENOENT/im.test(output);
  return {
    tool,
    what,
    does: code === 0 ? 'accepts' : 'refuses',
    isRight: code !== 0 && !isCrash && says.every((pattern) => pattern.test(output)),
    said: output,
  };
}

/** The table, and below it what the wrong ones printed. */
export function tableOf(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ tool }) => tool.length));
  const lines = rows.map(
    ({ tool, what, does, isRight }) =>
      `${isRight ? 'ok    ' : 'WRONG '} ${tool.padEnd(width)}  ${does.padEnd(7)}  ${what}`,
  );
  const wrong = rows.filter(({ isRight }) => !isRight);
  const reasons = wrong.map(({ tool, what, said }) => `\n${tool}, ${what}:\n${said.trimEnd()}`);
  return [...lines, ...reasons, '', `${rows.length - wrong.length} of ${rows.length} as they should be`].join(
    '\n',
  );
}
