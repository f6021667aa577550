import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { createYieldQueue } from '../../../src/server/core/serial-queue.js';

t.test('each caller has a turn of the event loop to itself, in order', async (t) => {
  const ownTurn = createYieldQueue();
  let turn = 0;
  let isOver = false;
  const counting = (async () => {
    while (!isOver) {
      await nextTurn();
      turn++;
    }
  })();
  const seen: { caller: number; turn: number }[] = [];
  await Promise.all(
    [0, 1, 2, 3].map(async (caller) => {
      await ownTurn();
      seen.push({ caller, turn });
    }),
  );
  isOver = true;
  await counting;
  t.same(
    seen.map(({ caller }) => caller),
    [0, 1, 2, 3],
  );
  t.equal(new Set(seen.map((one) => one.turn)).size, 4, 'no two in one turn');
});
