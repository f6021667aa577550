/** Sorts the test files of a whole run into processes. */

/** A process: the name of its entry point, and the paths of its test files below `test/`. */
export type TestProcess = { name: string; paths: string[] };

/**
 * Files that have a process each: those that start processes of their own and take long, that change the environment or
 * measure memory, and that read the whole checkout.
 */
const ALONE =
  /^(?:chaos|e2e|fault|generate|openapi|packages|server\/(?:embedded|exports\/destinations)|web)\/|^[^/]+$/;

/**
 * Files of one process. Six of `server/rpc/` take 45 s of CPU in one process and 65 s in six, of which starting one and
 * loading an app takes 0.5 s: the rest is code that is compiled once.
 */
const GROUP_SIZE = 10;

/** How long a file takes of which nothing is known: in a fresh checkout the groups of ten start first. */
const USUAL_MS = 15_000;

/**
 * Sorts compiled test files into processes, the longest first: neighbours share one, except those that are alone. Tap starts
 * them in the order of their names.
 *
 * @param paths below `test/`, with slashes, as `server/admin/sessions.test.js`
 * @param msOf how long a file took; undefined if that is not known
 */
export function groupTests(
  paths: readonly string[],
  msOf: (path: string) => number | undefined = () => undefined,
): TestProcess[] {
  const alone = paths.filter((path) => ALONE.test(path)).map((path) => [path]);
  const others = paths.filter((path) => !ALONE.test(path)).sort();
  const groups = Array.from({ length: Math.ceil(others.length / GROUP_SIZE) }, (_, i) =>
    others.slice(i * GROUP_SIZE, (i + 1) * GROUP_SIZE),
  );
  const sum = (files: string[]) => files.reduce((total, path) => total + (msOf(path) ?? USUAL_MS), 0);
  return [...alone, ...groups]
    .map((files) => ({ files, ms: sum(files) }))
    .sort((a, b) => b.ms - a.ms)
    .map(({ files }, at) => ({ name: nameOf(files[0]!, at), paths: files }));
}

function nameOf(path: string, at: number): string {
  return `${String(at + 1).padStart(3, '0')}/${path.replace(/\.js$/, '')}`;
}
