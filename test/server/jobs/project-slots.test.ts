/** Slots that projects share: the shares of projects and their members, and the order of those that wait. */
import t from 'tap';
import {
  createProjectSlots,
  type ProjectSlots,
  type SlotShare,
  tryTakeSlot,
} from '../../../src/server/jobs/project-slots.js';

const MANY = 100;

/** Opens the share of a subscription that wants so many slots. */
function openShare(
  slots: ProjectSlots,
  projectId: string,
  wanted = MANY,
  granted: () => void = () => {
    throw new Error('a call that was withdrawn, or not made, was granted a slot');
  },
): SlotShare {
  const share = slots.open(projectId, granted);
  share.want(wanted);
  return share;
}

/** Takes slots of a share until it gets none; it waits for the next then, if it has not its share. @returns the number taken */
function takeAll(share: SlotShare): number {
  let taken = 0;
  while (share.take()) taken++;
  return taken;
}

function endAll(shares: readonly SlotShare[], taken: readonly number[]): void {
  for (const [i, share] of shares.entries()) {
    for (let n = 0; n < taken[i]!; n++) share.release();
    share.close();
  }
}

t.test('each project has its share of the slots, and there is always one more', async (t) => {
  const slots = createProjectSlots(12);
  const a = openShare(slots, 'a');
  const more = openShare(slots, 'a');
  t.equal(takeAll(a), 2, 'a third of half of them');
  more.want(0);
  t.equal(takeAll(a), 1, 'half of the half');
  more.close();
  const others = ['b', 'c', 'd', 'e', 'f'].map((projectId) => openShare(slots, projectId));
  t.same(others.map(takeAll), [1, 1, 1, 1, 1]);
  endAll([a, ...others], [3, 1, 1, 1, 1, 1]);
  const two = [openShare(slots, 'g'), openShare(slots, 'g')];
  t.same(two.map(takeAll), [2, 2], 'the half is for one project again');
});

t.test('of a project, those that want less than an equal share leave the rest to the others', async (t) => {
  const slots = createProjectSlots(512);
  const slow = Array.from({ length: 200 }, () => openShare(slots, 'p', 1));
  t.same(new Set(slow.map(takeAll)), new Set([1]));
  const fast = openShare(slots, 'p', 32);
  t.equal(takeAll(fast), (256 - 200) / 2);
  endAll(slow.slice(0, 2), [1, 1]);
  t.equal(takeAll(fast), 1, 'half of two more');
  fast.want(4);
  for (let i = 0; i < 26; i++) fast.release();
  t.equal(takeAll(fast), 1, 'nobody has more than it wants');
});

t.test('many that want many have one each, even when not all are in use', async (t) => {
  const slots = createProjectSlots(512);
  const shares = Array.from({ length: 200 }, () => openShare(slots, 'p', 32));
  t.same(new Set(shares.map(takeAll)), new Set([1]));
  t.same(new Set(shares.map(takeAll)), new Set([0]));
});

t.test('a project waits for its share, which grows when another project is done', async (t) => {
  const slots = createProjectSlots(4);
  const served: string[] = [];
  const a = openShare(slots, 'a');
  t.ok(a.take());
  const b = openShare(slots, 'b');
  t.ok(b.take());
  const waiting = openShare(slots, 'b', 1, () => void served.push('b'));
  t.notOk(waiting.take());
  a.release();
  t.same(served, [], 'a has not ended');
  a.close();
  t.same(served, ['b']);
});

t.test('slots are granted in the order of the calls, once for each', async (t) => {
  const slots = createProjectSlots(2);
  const served: string[] = [];
  const open = (name: string) => openShare(slots, 'p', 1, () => void served.push(name));
  const [first, second, third, fourth] = [open('first'), open('second'), open('third'), open('fourth')];
  t.ok(first.take());
  for (const share of [second, third, second, fourth]) t.notOk(share.take());
  third.close();
  first.release();
  t.notOk(first.take(), 'others wait');
  second.release();
  t.notOk(second.take());
  second.close();
  fourth.release();
  t.same(served, ['second', 'fourth', 'first']);
  first.release();
  t.same(served, ['second', 'fourth', 'first'], 'nobody waits');
});

t.test('single slots: a project that has its share gets none, another one does', async (t) => {
  const slots = createProjectSlots(4);
  const [first, second] = [tryTakeSlot(slots, 'a'), tryTakeSlot(slots, 'a')];
  t.notOk(tryTakeSlot(slots, 'a'), 'half of them');
  const other = tryTakeSlot(slots, 'b');
  t.ok(other);
  for (const release of [first, second, other]) release?.();
  t.ok(tryTakeSlot(slots, 'a'));
});
