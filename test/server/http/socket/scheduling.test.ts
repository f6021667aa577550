import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { createSendQueue, createStartQueue } from '../../../../src/server/http/socket/scheduling.js';

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

t.test('responses of one turn of the event loop are sent at its end, in order', async (t) => {
  const send = createSendQueue();
  const sent: number[] = [];
  send(() => sent.push(0));
  send(() => {
    sent.push(1);
    send(() => sent.push(2));
  });
  t.strictSame(sent, [], 'not at once');
  await nextTurn();
  t.strictSame(sent, [0, 1]);
  await nextTurn();
  t.strictSame(sent, [0, 1, 2], 'what is made while sending waits for the next end');
});
