import type { Output } from '../cli.js';

/** How far work has come: a bar on a terminal, elsewhere a line every 10 s. */
export type Progress = {
  add(count: number): void;
  /** Erases the bar, before a line is printed or at the end. The next `add` redraws it. */
  clear(): void;
};

const BAR_WIDTH = 24;
const REDRAW_MS = 100;
const LINE_MS = 10_000;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * Starts to show progress. `total` is in bytes unless `format` shows another unit; `now` is in milliseconds. `tail` is shown
 * after the counts.
 */
export function openProgress(
  { output, now }: { output: Output; now: () => number },
  label: string,
  total: number,
  format = formatSize,
  tail = () => '',
): Progress {
  let done = 0;
  if (!output.isTTY) {
    let saidAt = now();
    const add = (count: number) => {
      done += count;
      if (now() - saidAt < LINE_MS) return;
      saidAt = now();
      output.write(`${label}: ${percentOf(done, total)}%, ${format(done)} of ${format(total)}${tail()}\n`);
    };
    return { add, clear: () => {} };
  }
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    add: (count) => {
      done += count;
      if (now() - drawnAt < REDRAW_MS) return;
      drawnAt = now();
      const line = `${formatBar(label, done, total, format)}${tail()}`.slice(0, (output.columns ?? 80) - 1);
      output.write(`\r\x1b[K${line}`);
    },
    clear: () => {
      if (drawnAt !== Number.NEGATIVE_INFINITY) output.write('\r\x1b[K');
      drawnAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** `label [#####.....]  50%  1.0 of 2.0 GiB`. */
export function formatBar(label: string, done: number, total: number, format = formatSize): string {
  const filled = Math.floor(shareOf(done, total) * BAR_WIDTH);
  const bar = `${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}`;
  const percent = `${percentOf(done, total)}%`.padStart(4);
  return `${label} [${bar}] ${percent}  ${format(done)} of ${format(total)}`;
}

function shareOf(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(done / total, 1);
}

function percentOf(done: number, total: number): number {
  return Math.floor(shareOf(done, total) * 100);
}

/** A number of bytes, as in `1.5 GiB`. */
export function formatSize(bytes: number): string {
  const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1);
  return unit === 0 ? `${bytes} B` : `${(bytes / 1024 ** unit).toFixed(1)} ${UNITS[unit]}`;
}
