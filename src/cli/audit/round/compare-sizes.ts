/** Compares the log's checkpoint with smaller and larger ones. */
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { splitView } from '../alarm/alarm.js';
import { isSameTree, type SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import { type Course, report } from './course.js';

/**
 * Compares the log with larger checkpoints. Mirrors and witnesses may show one before a cache of the log does; that the
 * log itself shows less than before, or than a bundle has of it, is a rollback. Returns whether it is.
 */
export async function compareLarger(
  course: Course,
  main: SeenCheckpoint | undefined,
  others: readonly SeenCheckpoint[],
): Promise<boolean> {
  const size = main?.size ?? 0;
  let isBehind = false;
  for (const one of others.filter((other) => other.size > size)) {
    const prefix = main && (await course.findPrefix(size, one));
    const isOwn = !isElsewhere(course, one);
    if (main && prefix && !equalBytes(prefix.rootHash, main.rootHash)) {
      course.alarms.push(splitView(main, one, { odd: isOwn ? main : one, prefix }));
      if (isOwn) course.isSound = false;
    } else if (isOwn || prefix === undefined) {
      isBehind ||= isOwn;
      const message = `it shows ${size} entries now, and has signed that there are ${one.size} (${one.from})`;
      if (course.deps.isOverdue(`${one.size} ${one.from}`)) {
        report(course, message, main && { evidence: { first: main, second: one } });
      } else course.troubles.push(message);
    }
  }
  return isBehind;
}

function isElsewhere({ watched: { mirrors, witnesses } }: Course, { from }: SeenCheckpoint): boolean {
  return [...mirrors, ...witnesses].some(({ name }) => name === from);
}

/** Compares checkpoints from before the start with the log; returns those that agree. */
export async function compareOlder(
  course: Course,
  main: SeenCheckpoint,
  older: readonly SeenCheckpoint[],
): Promise<SeenCheckpoint[]> {
  const { tip, notes } = course.memory;
  const known = [...(tip ? [tip.checkpoint] : []), ...notes];
  const agreed: SeenCheckpoint[] = [];
  for (const one of older) {
    const isKnown = known.some((note) => isSameTree(note, one));
    const prefix = isKnown ? undefined : await course.findPrefix(one.size, main);
    if (isKnown || (prefix && equalBytes(prefix.rootHash, one.rootHash))) agreed.push(one);
    else if (prefix) course.alarms.push(splitView(one, main, { odd: one, prefix }));
    else
      course.troubles.push(
        `${one.from} cannot be compared: nobody serves the tiles for its ${one.size} entries`,
      );
  }
  return agreed;
}
