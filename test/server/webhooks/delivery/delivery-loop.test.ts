/** The loop that claims and sends: its turn for a slot, and late answers of the database. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createProjectSlots, type SlotShare } from '../../../../src/server/jobs/project-slots.js';
import { type DeliveryDeps, runDeliveries } from '../../../../src/server/webhooks/delivery/delivery-loop.js';
import { until } from '../../../support/until.js';

/** Longer than a claimed row waits for its request. */
const STALE_MS = 41_000;
/** Longer than a lease is relied upon without a look at it. */
const LATE_MS = 1_100;

type Happened = { sent: number[]; returned: number[]; claims: number };

/** Dependencies that claim row 1, then row 2, then none, and note what happens. */
function rowsOneAndTwo(happened: Happened, more: Partial<DeliveryDeps<number>>): DeliveryDeps<number> {
  return {
    claim: async () => (++happened.claims <= 2 ? [happened.claims] : []),
    leaseHolds: async () => true,
    openSlots: (granted) => createProjectSlots(2).open('prj', granted),
    send: async (row, sent) => {
      happened.sent.push(row);
      sent((limit) => limit);
    },
    returnUnsent: (row) => void happened.returned.push(row),
    isStopping: () => false,
    ...more,
  };
}

t.test(
  'a loop that waits for a slot keeps its turn while its rows go stale and are claimed anew',
  async (t) => {
    const realNow = performance.now.bind(performance);
    let aheadMs = 0;
    performance.now = () => realNow() + aheadMs;
    t.teardown(() => {
      performance.now = realNow;
    });
    const slots = createProjectSlots(2);
    const happened: Happened = { sent: [], returned: [], claims: 0 };
    const sentBefore: number[][] = [];
    const openShare = (granted: () => void): SlotShare => {
      const share = slots.open('prj', granted);
      share.want(1);
      return share;
    };
    const holder = openShare(() => {});
    t.ok(holder.take());
    let isWaiting = false;
    const deps = rowsOneAndTwo(happened, {
      openSlots: (granted) => {
        const share = slots.open('prj', granted);
        return {
          ...share,
          take: () => {
            isWaiting = true;
            return share.take();
          },
        };
      },
    });
    const running = runDeliveries(deps, 4);
    await until('it waits for a slot', () => isWaiting);
    const later = openShare(() => void sentBefore.push([...happened.sent]));
    t.notOk(later.take());
    aheadMs = STALE_MS;
    await until('the next row is claimed', () => happened.claims === 2);
    t.same(happened, { sent: [], returned: [1], claims: 2 });
    holder.release();
    await running;
    t.same(happened.sent, [2]);
    t.same(sentBefore, [[2]], 'who came later has the slot after it');
  },
);

t.test('a row whose claim is answered late is sent only if the lease still holds', async (t) => {
  for (const holds of [true, false]) {
    const happened: Happened = { sent: [], returned: [], claims: 0 };
    const deps = rowsOneAndTwo(happened, {
      claim: async () => {
        if (++happened.claims > 1) return [];
        await delay(LATE_MS);
        return [1];
      },
      leaseHolds: async () => holds,
    });
    await runDeliveries(deps, 4);
    t.match(happened, holds ? { sent: [1], returned: [] } : { sent: [], returned: [1] });
  }
});
