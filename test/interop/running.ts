/** Runs the checks. */
import type { Row } from './rows.js';

/** One check: what a tool, or several, did with what they were given. */
export type Check<S> = (scene: S) => Promise<Row[]>;

/** The checks of these names, in their own order, or all: `stored-log` is `checkStoredLog`. Throws if a name is of none. */
export function chooseChecks<S>(checks: readonly Check<S>[], names: readonly string[]): readonly Check<S>[] {
  const nameOf = ({ name }: Check<S>) =>
    name
      .replace(/^check/, '')
      .replace(/(?<=.)[A-Z]/g, '-$&')
      .toLowerCase();
  const known = checks.map(nameOf);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no check ${unknown}; there are ${known.join(', ')}`);
  return names.length === 0 ? checks : checks.filter((check) => names.includes(nameOf(check)));
}

/** The rows of all checks, in turn. A check that throws has one wrong row, with its name and the error. */
export async function runAll<S>(checks: readonly Check<S>[], scene: S): Promise<Row[]> {
  const rows: Row[] = [];
  for (const check of checks) {
    try {
      rows.push(...(await check(scene)));
    } catch (error) {
      rows.push(failed(check.name, error));
    }
  }
  return rows;
}

function failed(name: string, error: unknown): Row {
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { tool: name, what: 'the check itself', does: 'throws', isRight: false, said };
}
