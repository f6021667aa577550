/** The schemas of what tests leave behind: evaluations and snapshots. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import t from 'tap';
import { codeBlocks } from '../../support/source/pages.js';
import { changed, evaluation, problemsOf, uiSnapshot } from './samples.js';

type Case = [path: string, value: JsonValue | undefined, problem?: string];

const SHA256 = '^[0-9a-f]{64}$';
const NUMBER = '^(?:NaN|-?Infinity|-?[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$';

function problemsOfCases(metadata: JsonObject, cases: readonly Case[]): (readonly string[])[] {
  return cases.map(([path, value]) => problemsOf(changed(metadata, path, value)));
}

function expectedOf(cases: readonly Case[]): (readonly string[])[] {
  return cases.map(([path, , problem]) => (problem === undefined ? [] : [`${path} ${problem}`]));
}

t.test('an evaluation is checked member by member', async (t) => {
  t.strictSame(problemsOf(evaluation), []);
  const least = {
    status: 'error',
    task: { name: 'a' },
    model: { name: 'b' },
    metrics: [],
    samples: { total: 0 },
  };
  t.strictSame(problemsOf({ schema: 'evaluation.v1', ...least }), []);
  const cases: Case[] = [
    ['/status', undefined, 'is required'],
    ['/status', 'started', 'must be one of success, error, cancelled'],
    ['/task', undefined, 'is required'],
    ['/task/name', '', 'is empty'],
    ['/task/version', null, 'must be a string or a number'],
    ['/task/more', null],
    ['/subtasks/0/name', undefined, 'is required'],
    ['/model', 'gpt', 'must be an object'],
    ['/metrics', undefined, 'is required'],
    ['/metrics/0/name', undefined, 'is required'],
    ['/metrics/0/value', null, 'must be a number or a string'],
    ['/metrics/0/value', '9007199254740993'],
    ['/metrics/0/stderr', '-1.5e-7'],
    ['/metrics/0/stderr', 'N/A', `must match pattern "${NUMBER}"`],
    ['/samples/total', '6', 'must be an integer'],
    ['/samples/errored', -1, 'must be >= 0'],
    ['/epochs', 0, 'must be >= 1'],
    ['/seeds/seed', 0.5, 'must be an integer or a string'],
    ['/limits/message_limit', {}, 'must be a number or a string or an array'],
    ['/versions/inspect_ai', 3, 'must be a string'],
    ['/dataset/digest', {}, 'is empty'],
    ['/dataset/digest/sha256', 'AB', `must match pattern "${SHA256}"`],
    ['/revision/commit', undefined, 'is required'],
    ['/started_at', '2026-11-26', 'must be an RFC 3339 time stamp, as in 2024-01-31T12:00:00Z'],
  ];
  t.strictSame(problemsOfCases(evaluation, cases), expectedOf(cases));
});

t.test('a snapshot is checked member by member', async (t) => {
  t.strictSame(problemsOf(uiSnapshot), []);
  const cases: Case[] = [
    ['/kind', 'diff', 'must be one of baseline, actual'],
    ['/test', {}, 'must have file or title'],
    ['/test/title', undefined],
    ['/snapshot', {}, 'must have name or count'],
    ['/baseline', undefined, 'is required'],
    ['/baseline/digest', undefined],
    ['/baseline/digest/sha256', 'x', `must match pattern "${SHA256}"`],
    ['/image/width', 0, 'must be >= 1'],
    ['/image/media_type', undefined, 'is required'],
    ['/viewport/height', undefined, 'is required'],
    ['/viewport/device_scale_factor', 0, 'must be > 0'],
    ['/browser', 'chromium', 'must be an object'],
  ];
  t.strictSame(problemsOfCases(uiSnapshot, cases), expectedOf(cases));
});

t.test('the examples of the pages about these schemas are valid', async (t) => {
  for (const [page, schema] of [
    ['docs/evaluations.md', 'evaluation.v1'],
    ['docs/snapshots.md', 'ui_snapshot.v1'],
  ] as const) {
    const [example = ''] = await codeBlocks(page, 'json');
    t.match(JSON.parse(example), { schema });
    t.strictSame(problemsOf(JSON.parse(example)), []);
  }
});
