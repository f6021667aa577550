/** Counts tests and keeps the names that metadata has room for. */
import { hash } from 'node:crypto';
import { UsageError } from '../../cli.js';
import { type Outcome, worse } from './outcome.js';
import type { JUnitHandler } from './parse-junit.js';

/** So many take 60 MB. */
const MAX_NAMES = 500_000;
/** A longer name is cut. */
const MAX_NAME_CHARACTERS = 1_000;
/** Of the names kept of each outcome, in characters of JSON: more than metadata has room for. */
const MAX_KEPT_CHARACTERS = 64 * 1024;

/** Names of tests with one outcome: how many there are, and the first of them. */
export type Names = { readonly count: number; readonly names: Iterable<string> };

export type Tally = JUnitHandler & {
  /** How many test cases have this outcome, as the tool counts them. */
  cases(outcome: Outcome): number;
  /** The names whose worst outcome this is, each once. */
  names(outcome: Outcome): Names;
  /** Whether the suites count failures. */
  hasDeclaredFailure(): boolean;
};

/** Starts to count. A name that comes again counts as its worst outcome. Throws UsageError beyond 500,000 names. */
export function openTally(): Tally {
  const outcomes = new Map<string, Outcome>();
  const groups = { passed: openGroup(), skipped: openGroup(), warned: openGroup(), failed: openGroup() };
  let isDeclared = false;
  return {
    onTest: ({ className, name, outcome }) => {
      groups[outcome].cases++;
      const full = fullName(className, name);
      // Names themselves could be of any length together. 96 bits: V8 keeps the whole text of a longer slice.
      const key = hash('sha256', full, 'binary').slice(0, 12);
      const before = outcomes.get(key);
      const after = before === undefined ? outcome : worse(before, outcome);
      if (after === before) return;
      if (before !== undefined) groups[before].remove(full);
      else if (outcomes.size === MAX_NAMES) throw new UsageError('the reports have more than 500,000 tests');
      outcomes.set(key, after);
      groups[after].add(full);
    },
    onDeclaredFailure: () => {
      isDeclared = true;
    },
    cases: (outcome) => groups[outcome].cases,
    names: (outcome) => groups[outcome],
    hasDeclaredFailure: () => isDeclared,
  };
}

function openGroup() {
  const names = new Set<string>();
  let kept = 0;
  const group = {
    cases: 0,
    count: 0,
    names,
    add: (name: string) => {
      group.count++;
      if (kept + name.length > MAX_KEPT_CHARACTERS) return;
      names.add(name);
      kept += name.length;
    },
    remove: (name: string) => {
      group.count--;
      if (names.delete(name)) kept -= name.length;
    },
  };
  return group;
}

/** Class and name as the tool writes them, as in `tests.test_cart.TestCart > test_total`; once if they are equal. */
function fullName(className: string, name: string): string {
  const full = className === '' || className === name ? name : `${className} > ${name}`;
  const whole = full.length > MAX_NAME_CHARACTERS ? `${full.slice(0, MAX_NAME_CHARACTERS)}…` : full;
  // Not in XML, nor in metadata.
  return whole.toWellFormed().replaceAll('\0', '\ufffd');
}
