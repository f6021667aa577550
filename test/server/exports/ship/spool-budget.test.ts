/** The budget of temporary files: who waits, who goes on, and who begins again. */
import { tmpdir } from 'node:os';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { spool } from '../../../../src/server/exports/ship/spool.js';
import { createSpoolBudget, type SpoolAccount } from '../../../../src/server/exports/ship/spool-budget.js';

const NEVER = new AbortController().signal;

/** Begins to add bytes. `state` says whether that has ended, and how. */
function adding(account: SpoolAccount, bytes: number, signal = NEVER) {
  const result = { state: 'waits' };
  const ended = account.add(bytes, signal).then(
    () => {
      result.state = 'has room';
    },
    (error: Error) => {
      result.state = error.name;
    },
  );
  return { result, ended };
}

/** Lets everything that is settled be noticed. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

t.test('bytes count until their object is closed, and an object without room waits', async (t) => {
  const budget = createSpoolBudget(100);
  const [a, b] = [budget.open('a'), budget.open('b')];
  await a.add(60, NEVER);
  await b.add(40, NEVER);
  t.equal(budget.bytesInUse(), 100);
  const more = adding(b, 50);
  await settle();
  t.equal(more.result.state, 'waits');
  a.close();
  await more.ended;
  t.equal(more.result.state, 'has room');
  t.equal(budget.bytesInUse(), 90);
  b.close();
  t.equal(budget.bytesInUse(), 0);
});

t.test('an object larger than the whole budget fails at once', async (t) => {
  const account = createSpoolBudget(3 * 1024 * 1024).open('a');
  await account.add(2 * 1024 * 1024, NEVER);
  await t.rejects(account.add(2 * 1024 * 1024, NEVER), {
    name: 'DestinationError',
    message: /larger than the 3 MiB .* use compression/,
  });
});

t.test('the oldest object gets room first, and no younger one passes it', async (t) => {
  const budget = createSpoolBudget(100);
  const [old, busy, young] = [budget.open('a'), budget.open('b'), budget.open('c')];
  await busy.add(70, NEVER);
  const first = adding(old, 50);
  const second = adding(young, 10);
  await settle();
  t.same([first.result.state, second.result.state], ['waits', 'waits']);
  busy.close();
  await Promise.all([first.ended, second.ended]);
  t.same([first.result.state, second.result.state], ['has room', 'has room']);
});

t.test('where each waits for the bytes of another, the youngest begins again', async (t) => {
  const budget = createSpoolBudget(100);
  const [old, young] = [budget.open('a'), budget.open('b')];
  await old.add(50, NEVER);
  await young.add(50, NEVER);
  const first = adding(old, 10);
  const second = adding(young, 10);
  await second.ended;
  t.equal(second.result.state, 'SpoolYield');
  young.close();
  await first.ended;
  t.equal(first.result.state, 'has room');
});

t.test('a project has a quarter, and a single object of it may have more', async (t) => {
  const budget = createSpoolBudget(100);
  const [large, small, other] = [budget.open('a'), budget.open('a'), budget.open('b')];
  await large.add(40, NEVER);
  const waiting = adding(small, 1);
  await settle();
  t.equal(waiting.result.state, 'waits');
  await other.add(20, NEVER);
  large.close();
  await waiting.ended;
  t.equal(waiting.result.state, 'has room');
});

t.test('an abort ends the wait, and the room stays free for others', async (t) => {
  const budget = createSpoolBudget(100);
  const [a, b] = [budget.open('a'), budget.open('b')];
  await a.add(100, NEVER);
  const controller = new AbortController();
  const waiting = adding(b, 10, controller.signal);
  controller.abort();
  await waiting.ended;
  t.equal(waiting.result.state, 'AbortError');
  await t.rejects(b.add(1, controller.signal), { name: 'AbortError' });
  b.close();
  t.equal(budget.bytesInUse(), 100);
});

t.test('many large objects at once go through a budget for two of them, whole', async (t) => {
  const piece = 'x'.repeat(64 * 1024);
  const budget = createSpoolBudget(2 * 1024 * 1024 + 1024);
  let most = 0;
  const objects = Array.from({ length: 12 }, async (_, i) => {
    const render = async function* () {
      for (let k = 0; k < 16; k++) {
        most = Math.max(most, budget.bytesInUse());
        yield Buffer.from(`${i}${piece}`);
        await settle();
      }
    };
    const options = { folder: tmpdir(), budget, projectId: `p${i}`, isGzip: false, signal: NEVER };
    const made = { name: `${i}`, contentType: 'text/plain', revision: 1, render };
    const content = await spool(made, options, async ({ whole }) => buffer((await whole()).read()));
    return content.toString() === `${i}${piece}`.repeat(16);
  });
  t.same(await Promise.all(objects), Array(12).fill(true));
  t.ok(most > 0 && most <= 2 * 1024 * 1024 + 1024, `${most} bytes`);
  t.equal(budget.bytesInUse(), 0);
});
