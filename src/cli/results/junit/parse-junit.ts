/** Parses reports in the format of JUnit, in pieces. */
import sax from 'sax';
import { printable } from '../../../protocol/printable.js';
import { UsageError } from '../../cli.js';
import { type Outcome, worse } from './outcome.js';

/** A test case, or a suite that failed as a whole, and whether the suites count failures of their own. */
export type JUnitHandler = {
  onTest(test: { className: string; name: string; outcome: Outcome }): void;
  /** A suite has a number of failures or errors above 0. */
  onDeclaredFailure(): void;
};

type JUnitParser = {
  /** Throws UsageError with file and line unless this goes on with a well-formed report. */
  write(text: string): void;
  /** Throws UsageError if the report is not complete. */
  end(): void;
};

/** Of the attributes of all open elements together, or a comment; text and CDATA of any length pass. */
const MAX_TOKEN_CHARACTERS = 1024 * 1024;
const MAX_DEPTH = 32;
const MAX_ATTRIBUTES = 256;

/** What the elements in a test case make of it. Those of reruns belong to Surefire, and Playwright's `includeRetries`. */
const OUTCOMES: ReadonlyMap<string, Outcome> = new Map([
  ['failure', 'failed'],
  ['error', 'failed'],
  ['flakyFailure', 'warned'],
  ['flakyError', 'warned'],
  ['rerunFailure', 'warned'],
  ['rerunError', 'warned'],
  ['skipped', 'skipped'],
]);

/** An open element; of a test case or suite with its outcome so far. */
type Open = {
  readonly name: string;
  readonly attributes: Record<string, string>;
  /** Of the attributes of the elements around it. */
  readonly charactersBefore: number;
  outcome: Outcome;
};

/**
 * Opens a parser of one report; `file` names it in errors. Expands no entities but those of XML itself: others stay as they are
 * written. Rejects document types, nesting beyond 32 elements, and comments, or attributes of open elements, beyond 1 Mi characters.
 */
export function openJUnitParser(file: string, handler: JUnitHandler): JUnitParser {
  // A setting of the whole module: it has one user. Checked after each piece.
  Object.assign(sax, { MAX_BUFFER_LENGTH: MAX_TOKEN_CHARACTERS });
  const parser = sax.parser(true, { position: true });
  const fail = (problem: string): never => {
    throw new UsageError(`${file}, line ${parser.line + 1}: ${problem}`);
  };
  const opened: Open[] = [];
  let [attributes, charactersBefore, characters] = [0, 0, 0];
  let isRootClosed = false;
  parser.onerror = ({ message }) => {
    // Left as it is written: tools write references to characters that XML does not have, such as escapes.
    if (message.startsWith('Invalid character entity')) parser.resume();
    else fail(`not well-formed XML: ${firstLine(message)}`);
  };
  parser.ondoctype = () => fail('has a document type (DOCTYPE), which no JUnit report has');
  parser.onopentagstart = () => {
    [attributes, charactersBefore] = [0, characters];
  };
  parser.onattribute = ({ value }) => {
    characters += value.length;
    if (++attributes > MAX_ATTRIBUTES) fail(`an element has more than ${MAX_ATTRIBUTES} attributes`);
    if (characters > MAX_TOKEN_CHARACTERS)
      fail('the attributes of open elements have more than 1 Mi characters');
  };
  parser.onopentag = (tag) => {
    const { name, attributes: values } = tag as sax.Tag;
    if (isRootClosed) fail('a second root element: is it two reports in one file?');
    if (opened.length === 0 && !isSuite(name)) fail(notReport(name));
    if (opened.length === MAX_DEPTH) fail(`elements are nested deeper than ${MAX_DEPTH}`);
    if (isSuite(name) && declaresFailure(values)) handler.onDeclaredFailure();
    const parent = opened.at(-1);
    const outcome = OUTCOMES.get(name);
    if (outcome !== undefined && parent !== undefined) parent.outcome = worse(parent.outcome, outcome);
    opened.push({ name, attributes: values, charactersBefore, outcome: initialOutcome(values) });
  };
  parser.onclosetag = () => {
    const closed = opened.pop();
    if (closed !== undefined) {
      report(closed, handler);
      characters = closed.charactersBefore;
    }
    if (opened.length === 0) isRootClosed = true;
  };
  return {
    write: (text) => void parser.write(text),
    end: () => {
      if (!isRootClosed && opened.length === 0) fail('is empty: not a JUnit report');
      if (!isRootClosed)
        fail(`ends within <${printable(opened.at(-1)?.name ?? '')}>: is it written completely?`);
      parser.close();
    },
  };
}

/** A test case is a test; a suite that has a failure of its own, such as one of its setup, counts as a failed one. */
function report({ name, attributes, outcome }: Open, handler: JUnitHandler): void {
  const { classname: className = '', name: testName = '' } = attributes;
  if (name === 'testcase') handler.onTest({ className, name: testName, outcome });
  else if (isSuite(name) && outcome === 'failed') handler.onTest({ className: '', name: testName, outcome });
}

/** GoogleTest has no element for a test that does not run. */
function initialOutcome({ status, result }: Record<string, string>): Outcome {
  return status === 'notrun' || result === 'suppressed' || result === 'skipped' ? 'skipped' : 'passed';
}

function isSuite(name: string): boolean {
  return name === 'testsuite' || name === 'testsuites';
}

function declaresFailure({ failures, errors }: Record<string, string>): boolean {
  return Number(failures ?? 0) > 0 || Number(errors ?? 0) > 0;
}

function notReport(root: string): string {
  return `the root element is <${printable(root.slice(0, 100))}>, not <testsuites> or <testsuite>: not a JUnit report`;
}

/** What the parser says of the problem, without the place, which is counted from 0. */
function firstLine(message: string): string {
  return printable((message.split('\n')[0] ?? '').slice(0, 200));
}
