/** Sorts the test files of a whole run into processes. */

/** A process: the name of its entry point and the paths of its test files, both below `test/`. */
export type TestProcess = { name: string; paths: string[] };

/**
 * Files that have a process each: those that start processes of their own and take long, that change the environment or
 * measure memory, and that read the whole checkout.
 */
const ALONE = /^(?:chaos|e2e|fault|generate|openapi|packages|server\/(?:embedded|export)|web)\/|^[^/]+$/;

/**
 * Files of one process. Six of `server/rpc/` take 45 s of CPU in one process and 65 s in six, of which starting one and
 * loading an app takes 0.5 s: the rest is code that is compiled once.
 */
const GROUP_SIZE = 10;

/**
 * Sorts compiled test files into processes: neighbours share one, except those that are alone.
 *
 * @param paths below `test/`, with slashes, as `server/rpc/list.test.js`
 */
export function groupTests(paths: readonly string[]): TestProcess[] {
  const alone = paths.filter((path) => ALONE.test(path));
  const others = paths.filter((path) => !ALONE.test(path)).sort();
  const count = Math.ceil(others.length / GROUP_SIZE);
  const groups = Array.from({ length: count }, (_, i) => ({
    name: `group-${String(i + 1).padStart(2, '0')}.test`,
    paths: others.slice(i * GROUP_SIZE, (i + 1) * GROUP_SIZE),
  }));
  return [...alone.map((path) => ({ name: path.replace(/\.js$/, ''), paths: [path] })), ...groups];
}
