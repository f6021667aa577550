import type { Output } from '../cli.js';

/** Shows which step of something long is under way. */
export type Steps = {
  /** Ends the step before, and shows this one. */
  begin(step: string): void;
  /** Ends the last step; nothing is shown any more. Before anything else is printed. */
  end(): void;
};

type StepsDeps = {
  output: Output;
  /** Milliseconds. */
  now: () => number;
  /** Calls `run` at this interval until the function that it returns is called. */
  every: (ms: number, run: () => void) => () => void;
};

/** The time of a step that took this long is shown. */
const LONG_MS = 1_000;
const REDRAW_MS = 1_000;

/**
 * Opens the steps. On a terminal one line shows the current step with its seconds, and stays if it took long. Elsewhere
 * each step is a line, and one that took long a second one.
 */
export function openSteps({ output, now, every }: StepsDeps): Steps {
  let current: { step: string; sinceMs: number; stop: () => void } | undefined;
  const draw = () => {
    if (current === undefined) return;
    const line = `${current.step}${duration(now() - current.sinceMs)} …`;
    output.write(`\r\x1b[K${line.slice(0, (output.columns ?? 80) - 1)}`);
  };
  const end = () => {
    if (current === undefined) return;
    const { step, sinceMs, stop } = current;
    current = undefined;
    stop();
    const took = duration(now() - sinceMs);
    if (output.isTTY) output.write(`\r\x1b[K${took === '' ? '' : `${step}${took}\n`}`);
    else if (took !== '') output.write(`${step} took${took}\n`);
  };
  return {
    begin(step) {
      end();
      current = { step, sinceMs: now(), stop: output.isTTY ? every(REDRAW_MS, draw) : () => {} };
      if (output.isTTY) draw();
      else output.write(`${step}\n`);
    },
    end,
  };
}

function duration(ms: number): string {
  return ms < LONG_MS ? '' : ` ${(ms / 1_000).toFixed(1)} s`;
}
