import t from 'tap';
import { type CoveringManifest, checkCoverage, covers } from '../../../src/proof/export/coverage.js';
import { createObjectCheck } from '../../../src/proof/export/object-check.js';
import type { LineFacts } from '../../../src/proof/export/verify-line.js';
import { PROJECT } from '../sample.js';
import { EXPORT_ID, manifestFields, manifestObject } from './manifest-sample.js';

const LOG = 'live.log.example';

/** The manifest of a day of June that covers part of a log. */
function day(
  number: number,
  from: number,
  to: number,
  change: Partial<CoveringManifest> = {},
): CoveringManifest {
  const { objects: _, ...fields } = manifestFields({ logs: [{ origin: LOG, start: 0, from, to }] });
  return { ...fields, day: `2025-06-0${number}`, file: `0${number}/manifest.json`, ...change };
}

t.test('consecutive days in any order cover the log', async (t) => {
  const days = [day(3, 20, 20), day(1, 0, 10), day(5, 20, 30, { isComplete: false }), day(2, 10, 20)];
  t.strictSame(checkCoverage(days, true), {
    logs: [{ origin: LOG, start: 0, from: 0, to: 30, gaps: [] }],
    problems: [],
  });
  t.strictSame(checkCoverage([], true), { logs: [], problems: [] });
});

t.test('an epoch that begins is a log of its own', async (t) => {
  const next = { origin: 'live-2.log.example', start: 0, from: 0, to: 5 };
  const ended = { origin: LOG, start: 0, from: 10, to: 12 };
  const { logs, problems } = checkCoverage([day(1, 0, 10), day(2, 10, 12, { logs: [ended, next] })], true);
  t.match(logs, [
    { origin: LOG, to: 12 },
    { origin: next.origin, to: 5 },
  ]);
  t.strictSame(problems, []);
});

t.test('a gap is a problem if the manifest after it is complete', async (t) => {
  const reason = `leaves 10 to 19 of ${LOG} are covered by no manifest: a day or more is missing before this one`;
  const gaps = [{ from: 10, to: 20 }];
  t.match(checkCoverage([day(1, 0, 10), day(3, 20, 30)], true), {
    logs: [{ from: 0, to: 30, gaps }],
    problems: [{ file: '03/manifest.json', reason }],
  });
  const backfill = checkCoverage([day(1, 0, 10), day(3, 20, 30, { isComplete: false })], true);
  t.match(backfill, { logs: [{ gaps }], problems: [] });
  t.equal(backfill.problems.length, 0);
});

t.test('the first day must begin where the export starts, if all days are there', async (t) => {
  t.match(checkCoverage([day(2, 10, 20)], true).problems, [
    { reason: /leaves 0 to 9 .* covered by no manifest/ },
  ]);
  t.strictSame(checkCoverage([day(2, 10, 20)], false).problems, []);
});

t.test('manifests that contradict each other are a problem', async (t) => {
  const cases: [reason: RegExp, second: CoveringManifest][] = [
    [/of another export than 01\/manifest.json/, day(2, 10, 20, { exportId: EXPORT_ID.replace('1J', '1K') })],
    [/of another export/, day(2, 10, 20, { project: PROJECT.replace('1J', '1K') })],
    [/of another export/, day(2, 10, 20, { filterSchema: 'purl' })],
    [/its day is also that of 01/, day(1, 10, 20, { file: '02/manifest.json' })],
    [/begins at 9, before the end of earlier days, 10/, day(2, 9, 20)],
    [/starts at 5, and at 0/, day(2, 10, 20, { logs: [{ origin: LOG, start: 5, from: 10, to: 20 }] })],
  ];
  for (const [reason, second] of cases) {
    t.match(checkCoverage([day(1, 0, 10), second], true).problems, [{ file: '02/manifest.json', reason }]);
  }
});

t.test('a manifest covers a batch of which it covers any leaf', async (t) => {
  const manifest = day(1, 10, 20);
  const batch = (firstIndex: number, treeSize: number, log = LOG) => ({ log, firstIndex, treeSize });
  for (const inside of [batch(10, 11), batch(19, 20), batch(5, 25)]) t.ok(covers(manifest, inside));
  for (const outside of [batch(9, 10), batch(20, 21), batch(10, 20, 'other')])
    t.notOk(covers(manifest, outside));
});

t.test('an object has one batch’s lines of one project, each once and in order', async (t) => {
  const object = manifestObject('4', { submissions: 2 });
  const manifest = manifestFields({ objects: [object], filterSchema: 'purl' });
  const facts = (logIndex: number, change: Partial<LineFacts> = {}): LineFacts => ({
    submissionId: 'sub_1',
    project: PROJECT,
    batchId: object.batchId,
    log: LOG,
    logIndex,
    firstIndex: 650,
    treeSize: 1000,
    schema: 'purl',
    ...change,
  });
  const listed = { object, manifest };
  const check = createObjectCheck({ batchId: object.batchId, listed });
  t.strictSame([check.add(facts(650)), check.add(facts(999)), check.end(2)], [[], [], []]);
  t.strictSame(check.add(facts(999)), ['leaf 999 occurs twice']);
  t.strictSame(check.add(facts(998)), ['leaf 998 is after leaf 999']);
  t.match(check.end(3), [/has 3 lines, not 2/]);
  t.match(check.end(1), [/has 1 line, not 2/]);
  const wrong: [reason: RegExp, change: Partial<LineFacts>][] = [
    [/it is of btc_0, not of btc_01JX5WQ4/, { batchId: 'btc_0' }],
    [/other leaves than leaves 650 to 999 of live.log.example/, { firstIndex: 651 }],
    [/other leaves/, { treeSize: 1001 }],
    [/other leaves/, { log: 'live-2.log.example' }],
    [/it is of prj_0, not of prj_/, { project: 'prj_0' }],
    [/not the one that the export is limited to/, { schema: 'other' }],
  ];
  for (const [reason, change] of wrong) {
    t.match(createObjectCheck({ batchId: object.batchId, listed }).add(facts(650, change)), [reason]);
  }
  const alone = createObjectCheck({});
  t.equal(alone.range(), undefined);
  t.strictSame(alone.end(0), []);
  t.strictSame(alone.add(facts(650)), []);
  t.match(alone.add(facts(651, { project: 'prj_0', batchId: 'btc_0' })), [
    /of btc_0, not of/,
    /of prj_0, not of/,
  ]);
  t.match(alone.range(), { log: LOG, firstIndex: 650, treeSize: 1000 });
  t.strictSame(alone.end(2), []);
});
