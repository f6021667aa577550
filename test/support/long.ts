/** What takes long by nature: `npm run test:long` runs all of it, other runs some of each kind. */

/** Whether this run is long. */
export const isLong = process.env.TEST_LONG !== undefined;

/** All cases of a kind in a long run, and the first `count` of them in others. */
export function someOf<T>(cases: readonly T[], count: number): readonly T[] {
  return isLong ? cases : cases.slice(0, count);
}
