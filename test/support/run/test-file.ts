/** Runs test files in one process. */
import t, { type Test } from 'tap';

let current: Test | undefined;

/** The test that a test file of a group has in place of tap's own: a subtest, which ends with the file. */
export function testOfFile(): Test {
  if (current === undefined) throw new Error('no test file is being loaded');
  return current;
}

/** Runs test files one after the other, each with teardowns of its own. */
export async function runFiles(files: Record<string, () => Promise<unknown>>): Promise<void> {
  for (const [name, load] of Object.entries(files)) {
    await t.test(name, async (t) => {
      current = t;
      await load();
    });
  }
}
