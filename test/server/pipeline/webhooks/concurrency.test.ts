import t from 'tap';
import type { SendResult } from '../../../../src/server/pipeline/webhooks/send.js';
import { drain, makeWitness, openPipeline } from '../../../support/pipeline.js';
import { startReceiver } from '../../../support/webhooks/receiver.js';
import { submitFor, subscribe } from '../../../support/webhooks/webhooks.js';

const FIRST = 4;
const ANSWERED: SendResult = { outcome: 'delivered', status: 204, durationMs: 50, answer: '' };

t.test('a slow endpoint gets ever more requests at a time, unless the worker is saturated', async (t) => {
  const test = await openPipeline(t, [await makeWitness(t, 'w')]);
  const { projectId } = await subscribe(test, await startReceiver(t));
  for (const isSaturated of [true, false]) {
    let open = 0;
    let most = 0;
    const send = async () => {
      most = Math.max(most, ++open);
      // Others start in the turns of the event loop before this one ends.
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      open--;
      return ANSWERED;
    };
    const { webhooks } = test.pipeline;
    await submitFor(test, projectId, 100);
    await drain(
      test.another({
        webhooks: { ...webhooks, active: new Map(), send, isSaturated: () => isSaturated },
      }),
    );
    t.ok(isSaturated ? most === FIRST : most > FIRST, `${most} at a time`);
  }
});
