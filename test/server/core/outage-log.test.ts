/** An outage is logged at growing intervals. */
import t from 'tap';
import { createOutageLog, createOutageLogs } from '../../../src/server/core/outage-log.js';

type Line = Record<string, unknown> & { at: number; message: string };

function setUp() {
  let nowMs = 1_000;
  const lines: Line[] = [];
  const write = (fields: object, message?: string) =>
    void lines.push({ at: (nowMs - 1_000) / 1_000, message: message ?? '', ...fields });
  const log = { info: write, warn: write } as never;
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { log, lines, pass, clock: () => nowMs };
}

t.test('an outage is logged at once, then after growing pauses, and at its end', async (t) => {
  const { log, lines, pass, clock } = setUp();
  const outageLog = createOutageLog(log, clock);
  outageLog.recovered({}, 'never failed');
  for (let second = 0; second < 3_600; second++) {
    outageLog.failed({ work: 'seal' }, 'away');
    pass(1_000);
  }
  outageLog.recovered({ work: 'seal' }, 'back');
  outageLog.recovered({ work: 'seal' }, 'logged already');
  t.same(
    lines.map(({ at }) => at),
    [0, 5, 15, 35, 75, 155, 315, 635, 1235, 1835, 2435, 3035, 3600],
  );
  t.match(lines[3], { work: 'seal', message: 'away', failures: 36, seconds: 35 });
  t.match(lines.at(-1), { work: 'seal', message: 'back', failures: 3_600, seconds: 3_600 });
});

t.test(
  'a failure a minute after the last starts a new outage, and each piece of work has its own lines',
  async (t) => {
    const { log, lines, pass, clock } = setUp();
    const outageLogs = createOutageLogs(log, clock);
    outageLogs.for('seal').failed({}, 'seal');
    outageLogs.for('settle').failed({}, 'settle');
    pass(1_000);
    outageLogs.for('seal').failed({}, 'seal');
    pass(61_000);
    outageLogs.for('seal').failed({}, 'seal');
    t.same(
      lines.map(({ at, message }) => `${message} ${at}`),
      ['seal 0', 'settle 0', 'seal 62'],
    );
  },
);
