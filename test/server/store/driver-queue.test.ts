/** The driver's queues of connections and statements, as they are patched. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';

/** What `postgres/src/queue.js` exports; the package names no type of it. */
type DriverQueue<T> = {
  readonly length: number;
  push: (item: T) => T;
  shift: () => T | undefined;
  remove: (item: T) => T | null;
};

const main = pathToFileURL(createRequire(import.meta.url).resolve('postgres'));
const { default: createQueue } = (await import(new URL('../../src/queue.js', main).href)) as {
  default: <T>(initial?: T[]) => DriverQueue<T>;
};

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

t.test('items leave in their order, and removed ones do not', async (t) => {
  const queue = createQueue([0]);
  const left: (number | undefined)[] = [];
  for (let n = 1; n < 1_000; n++) {
    queue.push(n);
    if (n % 3 === 0) left.push(queue.shift());
    if (n % 10 === 0) t.equal(queue.remove(n), n);
  }
  t.equal(queue.remove(0), null, 'what has left is not found');
  while (queue.length > 0) left.push(queue.shift());
  const expected = Array.from({ length: 1_000 }, (_, n) => n).filter((n) => n === 0 || n % 10 !== 0);
  t.same(left, expected);
  t.equal(queue.shift(), undefined);
  t.equal(queue.length, 0);
  queue.push(7);
  t.equal(queue.shift(), 7);
});

t.test('a queue that is never empty keeps no place for what has left', async (t) => {
  const queue = createQueue<object>([{}, {}]);
  const before = heapBytes();
  for (let n = 0; n < 2_000_000; n++) {
    queue.push({});
    queue.shift();
  }
  // A place takes eight bytes.
  t.ok(heapBytes() - before < 1024 * 1024);
  t.equal(queue.length, 2);
});
