/** Which faults are made when: determined by the seed, whatever the machine does meanwhile. */

import type { Random } from '../random.js';
import type { FaultKind } from './fault-kind.js';

/** One fault of a round. */
export type PlannedFault = { kind: FaultKind; target: string; afterMs: number; durationMs: number };

/** Faults that overlap, or one alone; after each round everything has to recover. */
export type Round = { faults: PlannedFault[]; pauseMs: number };

const ALONE = 0.5;
const MOST_AT_ONCE = 4;
/** Long ones are rare, so that many are made in a campaign. */
const SKEW = 3;

/** Rounds without end. Every kind comes up once before any comes up again. */
export function* planRounds(random: Random, kinds: readonly FaultKind[]): Generator<Round> {
  const deck: FaultKind[] = [];
  const draw = () => {
    if (deck.length === 0) deck.push(...random.shuffle(kinds));
    return deck.pop()!;
  };
  for (;;) {
    const wanted = random.fraction() < ALONE ? 1 : random.between(2, MOST_AT_ONCE);
    const faults: PlannedFault[] = [];
    while (faults.length < wanted) {
      const kind = draw();
      // Of two faults with the same subject one would end the other: it is made in the next round.
      if (faults.some((other) => subject(other.kind) === subject(kind))) {
        deck.push(kind);
        break;
      }
      faults.push(planFault(random, kind, faults.length === 0 ? 0 : random.below(2_000)));
    }
    yield { faults, pauseMs: random.below(1_500) };
  }
}

function planFault(random: Random, kind: FaultKind, afterMs: number): PlannedFault {
  const [least, most] = kind.durationMs;
  const durationMs = Math.round(least + (most - least) * random.fraction() ** SKEW);
  return { kind, target: random.pick(kind.targets), afterMs, durationMs };
}

/** What is done to: the first words of a kind's name up to its verb tell. */
function subject({ name }: FaultKind): string {
  return name.replace(/ (is|are|stall|carry|hangs|fails|talks|repeats|resets)( .*)?$/, '');
}
