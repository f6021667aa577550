import t from 'tap';
import { limitConcurrency } from '../../../src/server/core/limit-concurrency.js';

const refuse = () => new Error('too much is queued');

/** A work that ends when told to. */
function openWork() {
  let hasBegun = false;
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = async () => {
    hasBegun = true;
    await ended;
  };
  return { work, end: () => end(), hasBegun: () => hasBegun };
}

t.test('works run in the order of their calls, and what is too much is rejected', async (t) => {
  const run = limitConcurrency({ maxConcurrent: 1, maxQueued: 1 }, refuse);
  const [first, second] = [openWork(), openWork()];
  const both = [run(first.work), run(second.work)];
  await t.rejects(
    run(async () => undefined),
    { message: 'too much is queued' },
  );
  t.same([first.hasBegun(), second.hasBegun()], [true, false]);
  first.end();
  await both[0];
  second.end();
  await both[1];
  t.equal(await run(async () => 'after them'), 'after them');
});

t.test('a slot rests after a work that succeeded or failed, and its caller does not wait', async (t) => {
  const run = limitConcurrency({ maxConcurrent: 1, maxQueued: 2, rest: 1 }, refuse);
  const [queued, later] = [openWork(), openWork()];
  const failing = run(async () => {
    throw new Error('failed');
  });
  const waiting = run(queued.work);
  await t.rejects(failing, { message: 'failed' });
  t.equal(queued.hasBegun(), false, 'the slot rests');
  queued.end();
  await waiting;
  const last = run(later.work);
  t.equal(later.hasBegun(), false, 'it rests without a queue too');
  later.end();
  await last;
});
