import type { EventLoopUtilization } from 'node:perf_hooks';
import t from 'tap';
import { createSaturationWatch } from '../../../../src/server/pipeline/webhooks/saturation.js';

/** An event loop whose time the test tells. */
function createLoop() {
  const total = { idle: 0, active: 0 };
  const eventLoopUtilization = (now?: EventLoopUtilization, since?: EventLoopUtilization) => {
    if (now === undefined || since === undefined) return { ...total, utilization: 0 };
    const [idle, active] = [now.idle - since.idle, now.active - since.active];
    return { idle, active, utilization: active / (idle + active) };
  };
  return {
    loop: { now: () => total.idle + total.active, eventLoopUtilization },
    pass: (active: number, idle: number) => {
      total.active += active;
      total.idle += idle;
    },
  };
}

t.test('a loop is saturated while it was at work for most of the last interval', async (t) => {
  const { loop, pass } = createLoop();
  const isSaturated = createSaturationWatch(loop);
  t.notOk(isSaturated(), 'nothing is known yet');
  for (const [active, idle, expected] of [
    [60, 60, false],
    [95, 5, true],
    [76, 24, true],
    [74, 26, false],
    [0, 1_000, false],
    [100, 0, true],
  ] as const) {
    pass(active, idle);
    t.equal(isSaturated(), expected, `${active} ms of ${active + idle}`);
  }
});

t.test('it is looked at once in an interval', async (t) => {
  const { loop, pass } = createLoop();
  const isSaturated = createSaturationWatch(loop);
  pass(100, 0);
  t.ok(isSaturated());
  pass(0, 99);
  t.ok(isSaturated(), 'an interval has not passed');
  pass(0, 1);
  t.notOk(isSaturated());
});

t.test('the loop of this process is that of Node', async (t) => {
  t.type(createSaturationWatch()(), 'boolean');
});
