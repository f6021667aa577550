import type { Output } from '../cli.js';

/** A progress bar on a terminal; does nothing elsewhere. */
export type Progress = {
  add(count: number): void;
  /** Erases the bar, before a line is printed or at the end. The next `add` redraws it. */
  clear(): void;
};

const BAR_WIDTH = 24;
const REDRAW_MS = 100;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Opens a bar. `total` is in bytes unless `format` shows another unit; `now` is in milliseconds. */
export function openProgress(
  { output, now }: { output: Output; now: () => number },
  label: string,
  total: number,
  format = formatBytes,
): Progress {
  if (!output.isTTY) return { add: () => {}, clear: () => {} };
  let done = 0;
  let drawnAt = Number.NEGATIVE_INFINITY;
  return {
    add: (count) => {
      done += count;
      if (now() - drawnAt < REDRAW_MS) return;
      drawnAt = now();
      const line = formatBar(label, done, total, format).slice(0, (output.columns ?? 80) - 1);
      output.write(`\r\x1b[K${line}`);
    },
    clear: () => {
      if (drawnAt !== Number.NEGATIVE_INFINITY) output.write('\r\x1b[K');
      drawnAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** `label [#####.....]  50%  1.0 of 2.0 GiB`. */
export function formatBar(label: string, done: number, total: number, format = formatBytes): string {
  const share = total === 0 ? 1 : Math.min(done / total, 1);
  const filled = Math.floor(share * BAR_WIDTH);
  const bar = `${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}`;
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return `${label} [${bar}] ${percent}  ${format(done)} of ${format(total)}`;
}

function formatBytes(bytes: number): string {
  const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1);
  return unit === 0 ? `${bytes} B` : `${(bytes / 1024 ** unit).toFixed(1)} ${UNITS[unit]}`;
}
