/** Compares the log's checkpoint with smaller and larger ones. */
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { splitView } from '../alarm/alarm.js';
import { isSameTree, type SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import { type RoundState, report } from './round-state.js';

/**
 * Compares the log with larger checkpoints. Mirrors and witnesses may show one before a cache of the log does; that the
 * log itself shows less than before, or than a bundle has of it, is a rollback. Returns whether it is.
 */
export async function compareLarger(
  state: RoundState,
  main: SeenCheckpoint | undefined,
  others: readonly SeenCheckpoint[],
): Promise<boolean> {
  const size = main?.size ?? 0;
  let isBehind = false;
  for (const one of others.filter((other) => other.size > size)) {
    const prefix = main && (await state.findPrefix(size, one));
    const isOwn = !isElsewhere(state, one);
    if (main && prefix && !equalBytes(prefix.rootHash, main.rootHash)) {
      state.alarms.push(splitView(main, one, { odd: isOwn ? main : one, prefix }));
      if (isOwn) state.isSound = false;
    } else if (isOwn || prefix === undefined) {
      isBehind ||= isOwn;
      const message = `it shows ${size} entries now, and has signed that there are ${one.size} (${one.from})`;
      if (state.deps.isOverdue(`${one.size} ${one.from}`)) {
        report(state, message, main && { evidence: { first: main, second: one } });
      } else state.troubles.push(message);
    }
  }
  return isBehind;
}

function isElsewhere({ watched: { mirrors, witnesses } }: RoundState, { from }: SeenCheckpoint): boolean {
  return [...mirrors, ...witnesses].some(({ name }) => name === from);
}

/** Compares checkpoints from before the start with the log; returns those that agree. */
export async function compareOlder(
  state: RoundState,
  main: SeenCheckpoint,
  older: readonly SeenCheckpoint[],
): Promise<SeenCheckpoint[]> {
  const { tip, notes } = state.memory;
  const known = [...(tip ? [tip.checkpoint] : []), ...notes];
  const agreed: SeenCheckpoint[] = [];
  for (const one of older) {
    const isKnown = known.some((note) => isSameTree(note, one));
    const prefix = isKnown ? undefined : await state.findPrefix(one.size, main);
    if (isKnown || (prefix && equalBytes(prefix.rootHash, one.rootHash))) agreed.push(one);
    else if (prefix) state.alarms.push(splitView(one, main, { odd: one, prefix }));
    else
      state.troubles.push(
        `${one.from} cannot be compared: nobody serves the tiles for its ${one.size} entries`,
      );
  }
  return agreed;
}
