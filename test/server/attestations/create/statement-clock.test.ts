/** The time in statements: compared with the database's, and steady in between. */
import t from 'tap';
import { createStatementClock } from '../../../../src/server/attestations/create/statement-clock.js';
import { createLogger } from '../../../../src/server/core/logger.js';

const START_MS = Date.UTC(2026, 0, 1);

function makeClock() {
  const times = { wall: START_MS, monotonic: 7, database: START_MS, answerMs: 0 };
  const lines: Record<string, unknown>[] = [];
  const clock = createStatementClock({
    wallMs: () => times.wall,
    monotonicMs: () => times.monotonic,
    readDatabaseMs: async () => {
      const seen = times.database;
      pass(times.answerMs);
      return seen;
    },
    log: createLogger({ level: 'info', destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
  });
  const pass = (ms: number) => {
    times.wall += ms;
    times.monotonic += ms;
    times.database += ms;
  };
  return { clock, times, lines, pass };
}

const REFUSED = { message: "the service's clocks do not agree" };

t.test("it returns this machine's time once it was compared", async (t) => {
  const { clock, times, pass } = makeClock();
  t.throws(clock.now, REFUSED);
  t.equal(clock.offsetSeconds(), undefined);
  times.wall += 4_900;
  await clock.compare();
  t.equal(clock.now(), START_MS + 4_900);
  t.equal(clock.offsetSeconds(), 4.9);
  t.equal(clock.databaseMs(), START_MS);
  pass(1_000);
  t.equal(clock.databaseMs(), START_MS + 1_000);
  t.equal(clock.now(), START_MS + 5_900);
});

t.test('an offset of five seconds either way is an error, reported once', async (t) => {
  const { clock, times, lines } = makeClock();
  await clock.compare();
  for (const ahead of [5_100, -5_100]) {
    times.wall = times.database + ahead;
    for (let n = 0; n < 3; n++) await clock.compare();
    t.throws(clock.now, REFUSED);
    t.match(clock.unreadyReason(), `this machine's clock is ${ahead / 1000} s ahead of the database's`);
    times.wall = times.database;
    await clock.compare();
    t.equal(clock.now(), times.wall);
  }
  t.match(lines, [
    {
      level: 'error',
      offsetMs: 5_100,
      msg: /^no submission is accepted: this machine's clock is 5\.1 s ahead/,
    },
    { level: 'info', msg: /^submissions are accepted again/ },
    { level: 'error', offsetMs: -5_100 },
    { level: 'info' },
  ]);
});

t.test('a clock step between comparisons is in no statement', async (t) => {
  const { clock, times, lines } = makeClock();
  await clock.compare();
  times.wall += 3_000;
  t.equal(clock.now(), START_MS, 'a small step waits for the next comparison');
  times.wall += 3_600_000;
  t.throws(clock.now, REFUSED);
  t.match(lines, [{ level: 'error', msg: /was set after it was compared/ }]);
  await clock.compare();
  t.throws(clock.now, REFUSED);
  times.wall = times.database;
  await clock.compare();
  t.equal(clock.now(), START_MS);
});

t.test('a slow database does not count as an offset', async (t) => {
  const { clock, times } = makeClock();
  times.answerMs = 40_000;
  await clock.compare();
  t.equal(clock.unreadyReason(), undefined);
  times.wall += 30_000;
  await clock.compare();
  t.match(clock.unreadyReason(), /ahead/);
});
