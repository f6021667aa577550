import { randomBytes } from 'node:crypto';
import t from 'tap';
import { ENTRY_BYTES, mergeEntries } from '../../../../src/server/attestations/artifacts/merge-entries.js';

t.test('a merge of any parts of sorted entries is their sorted sequence', async (t) => {
  const sorted = (entries: Buffer[]) => [...entries].sort(Buffer.compare);
  for (let round = 0; round < 200; round++) {
    const inputs = Array.from({ length: 1 + (round % 16) }, (_, i) =>
      sorted(Array.from({ length: (round * 7 + i * 5) % 40 }, () => randomBytes(ENTRY_BYTES))),
    );
    const merged: Buffer[] = [];
    for (let isDone = false; !isDone; ) {
      const after = merged.at(-1) ?? Buffer.alloc(0);
      const slices = inputs.map((entries) => {
        const first = Math.max(
          0,
          entries.findLastIndex((entry) => entry.compare(after) <= 0),
        );
        const end = first + 2 + (round % 5);
        return { entries: Buffer.concat(entries.slice(first, end)), hasMore: end < entries.length };
      });
      const part = mergeEntries(slices, after);
      for (let place = 0; place < part.length; place += ENTRY_BYTES)
        merged.push(part.subarray(place, place + ENTRY_BYTES));
      isDone = slices.every(({ hasMore }) => !hasMore);
    }
    t.ok(Buffer.concat(merged).equals(Buffer.concat(sorted(inputs.flat()))), `round ${round}`);
  }
});
