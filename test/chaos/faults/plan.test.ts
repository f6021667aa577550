import t from 'tap';
import { createRandom } from '../random.js';
import { FAULT_KINDS } from './faults.js';
import { planRounds, type Round } from './plan.js';

function take(seed: string, count: number): Round[] {
  const rounds = planRounds(createRandom(seed), FAULT_KINDS);
  return Array.from({ length: count }, () => rounds.next().value as Round);
}

t.test('a seed gives the same faults again, another one gives others', async (t) => {
  t.same(take('a', 50), take('a', 50));
  t.notSame(take('a', 50), take('b', 50));
});

t.test('every kind comes up before any comes up again, some alone and some together', async (t) => {
  const rounds = take('a', 400);
  const names = rounds.flatMap(({ faults }) => faults.map(({ kind }) => kind.name));
  for (let start = 0; start + FAULT_KINDS.length <= names.length; start += FAULT_KINDS.length)
    t.equal(new Set(names.slice(start, start + FAULT_KINDS.length)).size, FAULT_KINDS.length);
  const sizes = new Set(rounds.map(({ faults }) => faults.length));
  t.same([...sizes].sort(), [1, 2, 3, 4]);
});

t.test('faults affect the target of their kind for their duration', async (t) => {
  for (const { faults } of take('a', 400)) {
    for (const { kind, target, durationMs } of faults) {
      t.ok(kind.targets.includes(target), kind.name);
      t.ok(durationMs >= kind.durationMs[0] && durationMs <= kind.durationMs[1], kind.name);
    }
  }
});
