/** Connections to the database that break at any moment: no process ends by it, and no statement leaves its transaction. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { connectPool, type Pool, type Sql } from '../../../src/server/database/connect.js';
import { errorCode, isConnectionLost } from '../../../src/server/database/database-errors.js';
import { type Break, startProxy } from '../../support/breaking/proxy.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

const databaseUrl = new URL(await testDatabase(t, { empty: true }));
const proxy = await startProxy({ host: databaseUrl.hostname, port: Number(databaseUrl.port) });
t.teardown(proxy.close);
const proxied = new URL(databaseUrl);
proxied.port = String(proxy.port);
const open = (url: URL): Pool => {
  const pool = connectPool({ url: url.href, name: 'test', max: 4, statementTimeoutMs: 10_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return pool;
};
const pool = open(proxied);
const direct = open(databaseUrl);
await direct`CREATE TABLE step (name text)`;

const stored = async () =>
  (await direct<{ name: string }[]>`SELECT name FROM step ORDER BY name`).map(({ name }) => name);
const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (isConnectionLost(error) ? 'lost' : error),
  );
const addSteps = async (tx: Sql) => {
  await tx`INSERT INTO step VALUES (${'first'})`;
  await tx`INSERT INTO step VALUES (${'second'})`;
};

t.beforeEach(async () => {
  await direct`TRUNCATE step`;
});

const FATES: [statement: string, when: Break, stored: string[]][] = [
  ['BEGIN', 'before the request arrives', []],
  ['BEGIN', 'before the answer arrives', []],
  ['first', 'before the request arrives', []],
  ['first', 'before the answer arrives', []],
  ['second', 'before the answer arrives', []],
  ['COMMIT', 'before the request arrives', []],
  ['COMMIT', 'before the answer arrives', ['first', 'second']],
];
for (const [statement, when, expected] of FATES) {
  t.test(`a connection lost at ${statement}, ${when}, leaves all of a transaction or nothing`, async (t) => {
    const broken = proxy.breakNext(when, (sent) => sent.includes(statement));
    const ended = await outcome(pool.begin(addSteps));
    await broken;
    t.equal(ended, 'lost');
    t.same(await stored(), expected);
    t.equal(await outcome(pool.begin(addSteps)), 'done');
  });
}

t.test(
  'a transaction whose connection is lost between two statements runs no further statement',
  async (t) => {
    for (const how of ['reset', 'end'] as const) {
      const ended = pool.begin(async (tx) => {
        const [row] = await tx<{ pid: number }[]>`SELECT pg_backend_pid() AS pid, 'before' AS place`;
        await tx`INSERT INTO step VALUES (${'first'})`;
        proxy.cut(how);
        await until('the connection is gone', async () => {
          const left = await direct`SELECT FROM pg_stat_activity WHERE pid = ${row?.pid ?? 0}`;
          return left.length === 0;
        });
        await until('others are connected again', async () => (await pool`SELECT 1`).length === 1);
        await tx`INSERT INTO step VALUES (${'second'})`;
      });
      t.equal(await outcome(ended), 'lost');
      t.same(await stored(), []);
    }
  },
);

t.test('a transaction in which a failed statement was ignored is not reported as committed', async (t) => {
  const overlooked = pool.begin(async (tx) => {
    await tx`INSERT INTO step VALUES (${'first'})`;
    await tx`SELECT no_such_column FROM step`.catch(() => {});
  });
  await t.rejects(overlooked, { message: /the transaction was rolled back: a statement failed/ });
  t.same(await stored(), []);
});

t.test('a transaction that its process does nothing in is ended, and its locks with it', async (t) => {
  const hasty = connectPool({ url: databaseUrl.href, name: 'test', max: 2, statementTimeoutMs: 300 });
  t.teardown(() => hasty.end({ timeout: 1 }));
  const stopped = hasty.begin(async (tx) => {
    await tx`INSERT INTO step VALUES (${'first'})`;
    await tx`SELECT pg_advisory_xact_lock(7, 7)`;
    await direct`SELECT pg_advisory_xact_lock(7, 7)`;
    await tx`INSERT INTO step VALUES (${'second'})`;
  });
  t.equal(await outcome(stopped), 'lost', 'it goes on after another has had its lock, and is told');
  t.same(await stored(), []);
  t.equal(await outcome(hasty.begin(addSteps)), 'done');
});

for (const when of ['before the request arrives', 'before the answer arrives'] as const) {
  t.test(
    `a connection whose server stops answering ${when} is closed, and the next statement uses another`,
    async (t) => {
      const hasty = connectPool({ url: proxied.href, name: 'test', max: 1, statementTimeoutMs: 300 });
      t.teardown(() => hasty.end({ timeout: 1 }));
      const silent = () => proxy.holdNext(when, (sent) => sent.includes('second'));
      let held = silent();
      t.equal(await outcome(hasty`INSERT INTO step VALUES (${'second'})`), 'lost');
      await held;
      t.same(await hasty`SELECT 1 AS one`, [{ one: 1 }]);
      await direct`TRUNCATE step`;
      held = silent();
      t.equal(await outcome(hasty.begin(addSteps)), 'lost');
      await held;
      t.same(await stored(), []);
      t.equal(await outcome(hasty.begin(addSteps)), 'done');
    },
  );
}

t.test('transactions are READ COMMITTED under any default of the database', async (t) => {
  const name = databaseUrl.pathname.slice(1);
  await direct.unsafe(`ALTER DATABASE "${name}" SET default_transaction_isolation = 'repeatable read'`);
  t.same(await open(databaseUrl)`SHOW transaction_isolation`, [{ transaction_isolation: 'read committed' }]);
});

t.test('a failed transaction rejects with its error, and its connection serves the next one', async (t) => {
  const failing = pool.begin(async (tx) => {
    await tx`INSERT INTO step VALUES (${'first'})`;
    await tx`SELECT 1/0`;
  });
  t.equal(errorCode(await failing.catch((error: unknown) => error)), '22012');
  t.equal(await outcome(pool.begin(addSteps)), 'done');
  t.same(await stored(), ['first', 'second']);
});

for (const when of ['before the request arrives', 'before the answer arrives'] as const) {
  t.test(
    `a connection lost while it is set up, ${when}, ends no process, and the next is whole`,
    async (t) => {
      const fresh = open(proxied);
      const broken = proxy.breakNext(when, (sent) => sent.includes('typarray'));
      const first = outcome(fresh`SELECT ${['a', 'b']}::text[] AS names`.then(() => {}));
      await broken;
      t.match(await first, /^(done|lost)$/);
      // Needs what a connection asks for at its start.
      const rows = await until('the pool is good again', () =>
        fresh`SELECT unnest(${['a,"b', 'c']}::text[]) AS name`.catch(() => false as const),
      );
      t.same(rows, [{ name: 'a,"b' }, { name: 'c' }]);
    },
  );
}

t.test('more transactions than connections wait for their turn', async (t) => {
  const all = Array.from({ length: 20 }, () => pool.begin((tx) => tx`INSERT INTO step VALUES (${'one'})`));
  await Promise.all(all);
  t.equal((await stored()).length, 20);
});

t.test('connections that break at any moment end no process and are all good again at once', async (t) => {
  let done = 0;
  let lost = 0;
  const work = async (run: () => Promise<unknown>) => {
    const ended = await outcome(run());
    if (ended === 'done') done++;
    else if (ended === 'lost') lost++;
    else throw ended;
  };
  for (let round = 0; round < 150; round++) {
    const works = Array.from({ length: 6 }, async (_, i) => {
      for (let turn = 0; turn < (round + i) % 5; turn++) await nextTurn();
      await work(() => (i % 2 ? pool`SELECT ${i}::int` : pool.begin(addSteps)));
    });
    for (let turn = 0; turn < round % 7; turn++) await nextTurn();
    proxy.cut(round % 2 ? 'reset' : 'end');
    await Promise.all(works);
  }
  t.ok(done > 0 && lost > 0, `${done} done, ${lost} lost`);
  t.equal((await stored()).filter((name) => name === 'first').length * 2, (await stored()).length);
  const after = Array.from({ length: 12 }, (_, i) =>
    outcome(i % 2 ? pool`SELECT 1`.then(() => {}) : pool.begin(addSteps)),
  );
  t.same(new Set(await Promise.all(after)), new Set(['done']));
});
