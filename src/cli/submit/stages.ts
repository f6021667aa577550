/** How far `attest submit` has come with many files. */
import { count as countOf } from '../../proof/export/object-check.js';
import type { Cli } from '../cli.js';
import { formatSize, openProgress, type Progress } from '../output/progress.js';

type Stages = {
  /** Bytes were hashed. */
  onBytes(bytes: number): void;
  /** A file was hashed, or cannot be. */
  onHashed(): void;
  /** A file got its submission, or failed. */
  onResult(isSubmitted: boolean): void;
  onWitnessed(): void;
  onWritten(): void;
  /** Nothing has happened, but time has passed. */
  tick(): void;
  clear(): void;
};

type Plan = {
  readonly files: number;
  readonly bytes: number;
  readonly wait: boolean;
  readonly bundles: boolean;
};

/**
 * Shows what is under way: the bytes hashed, with rate and time left, then the files submitted, then those witnessed or
 * written; and how far the others are.
 */
export function openStages(cli: Cli, { files, bytes, wait, bundles }: Plan): Stages {
  const count = { hashed: 0, submitted: 0, failed: 0, witnessed: 0, written: 0, bytes: 0 };
  const startedAt = cli.now().getTime();
  const shown = { output: cli.stderr, now: () => cli.now().getTime() };
  const rate = () => {
    const seconds = Math.max((cli.now().getTime() - startedAt) / 1000, 0.001);
    const left = Math.ceil((seconds / Math.max(count.bytes, 1)) * Math.max(bytes - count.bytes, 0));
    return `, ${formatSize(Math.round(count.bytes / seconds))}/s, ${left} s left`;
  };
  const failed = () => (count.failed === 0 ? '' : `, ${count.failed} failed`);
  const tail = (isHashing: boolean) => {
    const submitted = isHashing && files > 1 ? `, ${count.submitted} submitted` : '';
    const witnessed = wait ? `, ${count.witnessed} witnessed` : '';
    const written = bundles ? `, ${countOf(count.written, 'bundle')}` : '';
    return `${submitted}${failed()}${witnessed}${written}`;
  };
  const label = files === 1 ? 'hashing' : `hashing ${files} files`;
  const hashing = openProgress(shown, label, bytes, formatSize, () => `${rate()}${tail(true)}`);
  let later: { what: 'submitted' | 'witnessed'; progress: Progress; done: number } | undefined;
  const redraw = (more: number) => {
    if (count.hashed < files) return hashing.add(more);
    const what = count.submitted + count.failed < files || !wait ? 'submitted' : 'witnessed';
    if (later?.what !== what) {
      later?.progress.clear();
      hashing.clear();
      const name = what === 'submitted' ? 'submitting' : 'waiting for witnesses';
      const progress = openProgress(shown, name, files, String, () =>
        what === 'submitted' ? tail(false) : failed(),
      );
      later = { what, progress, done: 0 };
    }
    const { progress, done } = later;
    later.done = count[what];
    return progress.add(count[what] - done);
  };
  const add = (what: keyof typeof count, more: number, bytes = 0) => {
    count[what] += more;
    redraw(bytes);
  };
  return {
    onBytes: (more) => add('bytes', more, more),
    onHashed: () => add('hashed', 1),
    onResult: (isSubmitted) => add(isSubmitted ? 'submitted' : 'failed', 1),
    onWitnessed: () => add('witnessed', 1),
    onWritten: () => add('written', 1),
    tick: () => redraw(0),
    clear: () => {
      hashing.clear();
      later?.progress.clear();
    },
  };
}
