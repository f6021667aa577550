import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { createSendQueue } from '../../../../src/server/http/socket/turn-end.js';

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
