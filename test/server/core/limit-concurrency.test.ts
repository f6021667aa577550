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

t.test('one peer leaves room for another, and they take turns', async (t) => {
  const run = limitConcurrency({ maxConcurrent: 1, maxQueued: 4 }, refuse);
  const begun: string[] = [];
  const first = openWork();
  const running = run(first.work, 'greedy');
  const outcomes: Promise<string>[] = [];
  const add = (name: string, peer: string) =>
    outcomes.push(
      run(async () => void begun.push(name), peer).then(
        () => `${name} ran`,
        ({ message }: Error) => `${name}: ${message}`,
      ),
    );
  for (const n of [1, 2, 3, 4, 5]) add(`greedy ${n}`, 'greedy');
  for (const n of [1, 2, 3]) add(`other ${n}`, 'other');
  first.end();
  await running;
  t.same(await Promise.all(outcomes), [
    'greedy 1 ran',
    'greedy 2 ran',
    'greedy 3: too much is queued',
    'greedy 4: too much is queued',
    'greedy 5: too much is queued',
    'other 1 ran',
    'other 2 ran',
    'other 3: too much is queued',
  ]);
  t.same(begun, ['greedy 1', 'other 1', 'greedy 2', 'other 2']);
  t.equal(await run(async () => 'as before', 'greedy'), 'as before');
});
