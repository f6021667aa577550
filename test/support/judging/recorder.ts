/** Remembers what a service logs and answers, and says whether anything secret is in it. */
import type { Test } from 'tap';

/** A text that tests put into metadata, and that must be nowhere but in answers to those who may read it. */
export const CANARY = 'leakcanary';

/** What was logged and answered, and what must not be in it. */
export type Recorder = {
  lines: string[];
  errors: string[];
  /** API keys, salts: must be in no log line and no error answer. */
  secrets: Set<string>;
  logged(text: string): void;
  /** Remembers the text of an answer; salts in it become secrets. */
  answered(text: string, isError: boolean): void;
};

export function createRecorder(): Recorder {
  const recorder: Recorder = {
    lines: [],
    errors: [],
    secrets: new Set([CANARY]),
    logged: (text) => {
      recorder.lines.push(...text.split('\n').filter((line) => line !== ''));
    },
    answered: (text, isError) => {
      if (isError) recorder.errors.push(text);
      for (const [, salt = ''] of text.matchAll(SALT)) recorder.secrets.add(salt);
    },
  };
  return recorder;
}

const SALT = /"metadata(?:_s|S)alt":\s*"([0-9a-f]{64})"/g;
const API_KEY = /svc_(?:live|test)_[0-9A-Za-z]{4}/;
const SQL =
  /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM)\s+\S|(?:accept|sequence)_submissions|take_tokens|(?:relation|column|constraint) "/;
const STACK = /\bat \S+ \(|node_modules|\.[jt]s:\d+/;
/** Internal errors, which tests of requests must never cause. */
const INTERNAL = /service\.internal|a call failed|a route failed|a job failed|periodic work failed/;

/**
 * Asserts that nothing secret was logged or answered, and that nothing failed inside.
 *
 * @param mayFail whether something was made to fail inside: then the log may say what, with its stack
 */
export function assertNoLeaks(t: Test, { lines, errors, secrets }: Recorder, mayFail = false): void {
  t.ok(lines.length > 0, 'something was logged');
  const secretList = [...secrets];
  const failures = { STACK, INTERNAL };
  const never = { API_KEY, SQL };
  for (const [where, texts, patterns] of [
    ['lines', lines, mayFail ? never : { ...never, ...failures }],
    ['errors', errors, { ...never, ...failures }],
  ] as const) {
    const found = texts.filter((text) => secretList.some((secret) => text.includes(secret)));
    t.same(found, [], `no secret in ${where}`);
    for (const [what, pattern] of Object.entries(patterns)) {
      const matching = texts.filter((text) => pattern.test(text));
      t.same(matching, [], `nothing like ${what} in ${where}`);
    }
  }
}
