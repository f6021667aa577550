/** JSON logs that no evaluation wrote, or that were damaged. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { sliceItems, sliceMembers } from '../../../../src/cli/results/evaluation/json-slices.js';
import { parseLogJson } from '../../../../src/cli/results/log-json.js';
import { readParts, recorded, SAMPLES, writeLog } from './reading.js';

async function problemOf(t: Test, content: Uint8Array | string): Promise<string> {
  const log = writeLog(t, 'log.json', content);
  return readParts(log).then(
    () => 'none',
    (error: Error) => `${error.name}: ${error.message.replaceAll(log, 'LOG')}`,
  );
}

const INSPECT = '{"version":2,"status":"success","eval":{"task":"a","model":"b"},"samples":';
const PROMPTFOO = '{"evalId":"a","results":{"version":3,"results":';

t.test('JSON that is no log, or damaged, has an error that names the problem', async (t) => {
  const deep = '['.repeat(1_000_000);
  const many = Array.from({ length: 10_001 }, (_, i) => `"m${i}":0`).join();
  const cases: [problem: string, content: string][] = [
    ['the log is truncated or not JSON at byte 1', ''],
    ['the log is truncated or not JSON at byte 1', '[]'],
    ['the log is truncated or not JSON at byte 1', 'samples: 1'],
    ['LOG is no log of inspect_ai (.eval or .json), results of lm-evaluation-harness or output', '{}'],
    ['the log is truncated', `{"a":${deep}`],
    ['an object of the log has too many members', `{${many}}`],
    ['the log has the member "samples" twice', `${INSPECT}[],"samples":[]}`],
    ['the log is truncated', `${INSPECT}[{]}`],
    ['the log is truncated', `${INSPECT}{}}`],
    ['the log is truncated', `${INSPECT}[{"id":1,"epoch":1}{}]}`],
    ['the log has a sample without id', `${INSPECT}[{}]}`],
    ['the log has a sample without epoch', `${INSPECT}[{"id":1}]}`],
    ['the log has a sample whose id and epoch are no text and number', `${INSPECT}[{"id":{},"epoch":1}]}`],
    ['the log has a sample whose id is not Unicode', `${INSPECT}[{"id":"\\ud800","epoch":1}]}`],
    ['eval is not JSON', '{"version":2,"status":"success","eval":{x}}'],
    ['the evaluation has not ended', '{"version":2,"status":"started","eval":{}}'],
    ['the output has results of version 2', '{"evalId":"a","results":{"version":2}}'],
    ['the output has a result without testIdx and promptIdx', `${PROMPTFOO}[{"testIdx":-1}]}}`],
    ['the results name no model', '{"results":{},"configs":{},"versions":{}}'],
  ];
  for (const [problem, content] of cases) {
    const found = await problemOf(t, content);
    t.ok(found.startsWith(`UsageError: ${problem}`), `${problem}: ${found.slice(0, 300)}`);
  }
});

t.test('a log cut at any place has an error', async (t) => {
  for (const log of [
    'inspect_ai/arithmetic.json',
    'promptfoo/out.json',
    'lm_eval/results_2026-11-26T23-09-03.190210.json',
  ]) {
    const whole = recorded(log);
    for (let at = 0; at < whole.length - 1; at += 251) {
      t.match(await problemOf(t, whole.subarray(0, at)), /^UsageError: /, `${log} cut at ${at}`);
    }
  }
});

t.test(
  'samples of lm-evaluation-harness that are no lines of JSON have an error that names the line',
  async (t) => {
    const dir = t.testdir();
    const results = 'results_2026-11-26T23-09-03.190210.json';
    copyFileSync(join(SAMPLES, 'lm_eval', results), join(dir, results));
    const write = (text: string) =>
      writeFileSync(join(dir, 'samples_a_2026-11-26T23-09-03.190210.jsonl'), text);
    write('{"doc_id":0}\n\n{"doc_id":"x/../y"}');
    const { parts } = await readParts(join(dir, results));
    t.strictSame([...parts.keys()].slice(0, 2), ['samples/a/0.json', 'samples/a%2Fx%2F..%2Fy.json']);
    write('{"doc_id":0}\n{"filter":"none"}\n');
    await t.rejects(readParts(join(dir, results)), {
      name: 'UsageError',
      message: /^line 2 of .* has no doc_id$/,
    });
    write('{"doc_id":0}\n{"doc_id":0,\n');
    await t.rejects(readParts(join(dir, results)), { name: 'UsageError', message: /truncated/ });
  },
);

t.test('the slices of any JSON text are those of its values', async (t) => {
  const property = fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(3), (object, spaces) => {
    const text = Buffer.from(JSON.stringify(object, null, spaces));
    const slices = [...sliceMembers(text, 0)].map(([name, { start, end }]) => [
      name,
      JSON.parse(text.subarray(start, end).toString()),
    ]);
    t.strictSame(slices, Object.entries(JSON.parse(text.toString())));
    const list = Buffer.from(JSON.stringify(Object.values(object), null, spaces));
    const items = [...sliceItems(list, 0)].map(({ start, end }) =>
      JSON.parse(list.subarray(start, end).toString()),
    );
    t.strictSame(items, JSON.parse(list.toString()));
  });
  fc.assert(property, { numRuns: 200 });
});

t.test('numbers that JSON or a double has not become strings, outside of texts only', async (t) => {
  const text = '{"a":[NaN,-Infinity,9007199254740993,-1e2,1.5],"b\\"":"NaN 9007199254740993 \\\\"}';
  t.strictSame(parseLogJson(Buffer.from(text), 'x'), {
    a: ['NaN', '-Infinity', '9007199254740993', -100, 1.5],
    'b"': 'NaN 9007199254740993 \\',
  });
  t.throws(() => parseLogJson(Buffer.from([0x22, 0xff, 0x22]), 'x'), { message: 'x is not UTF-8' });
  t.throws(() => parseLogJson(Buffer.alloc(17 * 1024 * 1024), 'x'), { message: 'x is larger than 16 MiB' });
});
