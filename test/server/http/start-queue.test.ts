import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { createStartQueue } from '../../../src/server/http/server.js';

t.test('a turn of the event loop starts so many works, in their order', async (t) => {
  const start = createStartQueue(3);
  const started: number[] = [];
  for (let i = 0; i < 8; i++) start(() => started.push(i));
  t.strictSame(started, [0, 1, 2], 'the first at once');
  await nextTurn();
  start(() => started.push(8));
  t.strictSame(started, [0, 1, 2, 3, 4, 5], 'a later one waits behind those before it');
  await nextTurn();
  await nextTurn();
  t.strictSame(started, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  await nextTurn();
  start(() => started.push(9));
  t.strictSame(started.at(-1), 9, 'at once when nothing waits');
});

t.test('work that starts work waits for its turn too', async (t) => {
  const start = createStartQueue(2);
  const started: string[] = [];
  start(() => {
    started.push('a');
    start(() => started.push('b'));
    start(() => started.push('c'));
  });
  t.strictSame(started, ['a', 'b']);
  await nextTurn();
  t.strictSame(started, ['a', 'b', 'c']);
});
