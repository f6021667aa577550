/** JUnit's XML report, as Jenkins and GitLab read it. */
import { printable } from '../../protocol/printable.js';
import { writeWhole } from '../sets/set-file.js';

/** A test case; without a result it passed. */
export type JUnitCase = { readonly name: string; readonly result?: JUnitResult };

/** `type` is for programs, `message` one line, `detail` lines below it. */
export type JUnitResult = {
  readonly kind: 'failure' | 'error' | 'skipped';
  readonly type: string;
  readonly message: string;
  readonly detail?: readonly string[];
};

/** The characters that XML 1.0 (section 2.2) does not have, halves of surrogate pairs among them. */
const NOT_IN_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

const CLASS = 'attest.verify';

/** Writes a report of one suite, whole or not at all. Throws UsageError if it cannot be written. */
export async function writeJUnit(
  path: string,
  suite: { readonly cases: readonly JUnitCase[]; readonly startedAt: Date; readonly endedAt: Date },
): Promise<void> {
  await writeWhole(path, formatJUnit(suite));
}

async function* formatJUnit({
  cases,
  startedAt,
  endedAt,
}: Parameters<typeof writeJUnit>[1]): AsyncGenerator<string> {
  const count = (wanted: string) => cases.filter(({ result }) => result?.kind === wanted).length;
  const counts = { tests: cases.length, failures: count('failure'), errors: count('error') };
  const time = (Math.max(0, endedAt.getTime() - startedAt.getTime()) / 1000).toFixed(3);
  const suite = { name: 'attest verify', ...counts, skipped: count('skipped'), time };
  const timestamp = startedAt.toISOString().slice(0, 19);
  yield '<?xml version="1.0" encoding="UTF-8"?>\n';
  yield `<testsuites${attributes({ name: 'attest verify', ...counts, time })}>\n`;
  yield `<testsuite${attributes({ ...suite, timestamp })}>\n`;
  for (const { name, result } of cases) {
    const head = `<testcase${attributes({ name, classname: CLASS })}`;
    yield result === undefined ? `${head}/>\n` : `${head}>${formatResult(result)}</testcase>\n`;
  }
  yield '</testsuite>\n</testsuites>\n';
}

function formatResult({ kind, type, message, detail = [] }: JUnitResult): string {
  return `<${kind}${attributes({ type, message })}>${detail.map(escapeXml).join('\n')}</${kind}>`;
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(String(value))}"`)
    .join('');
}

/** Text for an attribute or an element: without markup, and what neither XML nor a terminal should have as U+FFFD. */
function escapeXml(text: string): string {
  return printable(text)
    .replace(NOT_IN_XML, '\ufffd')
    .replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
