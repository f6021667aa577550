import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import t from 'tap';
import { validateMetadata } from '../../../src/server/schema/registry.js';
import { changed, problemsOf, provenance, registry, testResult } from './samples.js';

const BUILT_IN = [
  'evaluation.v1',
  'intoto.test_result.v0.1',
  'purl',
  'scitt.statement.v1',
  'slsa.provenance.v1',
  'ui_snapshot.v1',
];

t.test('metadata that keeps to its schema is valid', async (t) => {
  t.strictSame(problemsOf({ schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0' }), []);
  t.strictSame(problemsOf({ schema: 'purl', purl: 'pkg:npm/left-pad', more: [1, { x: null }] }), []);
  t.strictSame(problemsOf(provenance), []);
  const least = { buildType: 'a:b', externalParameters: {} };
  t.strictSame(
    problemsOf({
      schema: 'slsa.provenance.v1',
      buildDefinition: least,
      runDetails: { builder: { id: 'a:b' } },
    }),
    [],
  );
  t.strictSame(problemsOf(testResult), []);
  t.strictSame(problemsOf({ schema: 'intoto.test_result.v0.1', result: 'WARNED', configuration: [] }), []);
});

t.test('an unknown schema is reported with the known ones', async (t) => {
  const names: JsonValue[] = [
    'nope',
    '',
    'PURL',
    'purl.json',
    '../purl',
    '__proto__',
    'constructor',
    'toString',
    1,
    null,
    ['purl'],
  ];
  for (const schema of names) {
    const verdict = validateMetadata(registry, { schema });
    t.strictSame(verdict, { ok: false, reason: 'unknown_schema', known: BUILT_IN }, JSON.stringify(schema));
  }
  t.strictSame(problemsOf({}), ['unknown schema']);
  t.strictSame(problemsOf(JSON.parse('{"__proto__":{"schema":"purl"}}')), ['unknown schema']);
});

t.test('each problem of a provenance is reported at its pointer', async (t) => {
  const uri = 'must be an absolute URI';
  const time = 'must be an RFC 3339 time stamp, as in 2024-01-31T12:00:00Z';
  const cases: [path: string, value: JsonValue | undefined, problem?: string][] = [
    ['/buildDefinition', undefined, '/buildDefinition is required'],
    ['/buildDefinition', 'x', '/buildDefinition must be an object'],
    ['/buildDefinition/buildType', undefined, '/buildDefinition/buildType is required'],
    ['/buildDefinition/buildType', 'workflow', `/buildDefinition/buildType ${uri}`],
    ['/buildDefinition/buildType', 'https://exa mple.com', `/buildDefinition/buildType ${uri}`],
    ['/buildDefinition/buildType', 1, '/buildDefinition/buildType must be a string'],
    ['/buildDefinition/externalParameters', undefined, '/buildDefinition/externalParameters is required'],
    ['/buildDefinition/externalParameters', [], '/buildDefinition/externalParameters must be an object'],
    [
      '/buildDefinition/internalParameters',
      'x',
      '/buildDefinition/internalParameters must be an object or null',
    ],
    [
      '/buildDefinition/resolvedDependencies',
      {},
      '/buildDefinition/resolvedDependencies must be an array or null',
    ],
    [
      '/buildDefinition/resolvedDependencies/1',
      'x',
      '/buildDefinition/resolvedDependencies/1 must be an object',
    ],
    [
      '/buildDefinition/resolvedDependencies/1',
      { name: 'x' },
      '/buildDefinition/resolvedDependencies/1 must have uri or digest or content',
    ],
    [
      '/buildDefinition/resolvedDependencies/0/digest/sha256',
      1,
      '/buildDefinition/resolvedDependencies/0/digest/sha256 must be a string',
    ],
    [
      '/buildDefinition/resolvedDependencies/1/content',
      'AAAA\n!!!!',
      '/buildDefinition/resolvedDependencies/1/content must be standard base64',
    ],
    ['/runDetails', undefined, '/runDetails is required'],
    ['/runDetails/builder/id', undefined, '/runDetails/builder/id is required'],
    ['/runDetails/builder/version', '1.0', '/runDetails/builder/version must be an object or null'],
    ['/runDetails/builder/version/a~1b', 1, '/runDetails/builder/version/a~01b must be a string'],
    ['/runDetails/metadata/invocationId', 7, '/runDetails/metadata/invocationId must be a string or null'],
    ['/runDetails/metadata/startedOn', '2024-01-31 12:00:00Z', `/runDetails/metadata/startedOn ${time}`],
    ['/runDetails/metadata/startedOn', '2024-02-30T12:00:00Z', `/runDetails/metadata/startedOn ${time}`],
    ['/runDetails/metadata/startedOn', '2024-01-31T12:00:00', `/runDetails/metadata/startedOn ${time}`],
    [
      '/runDetails/metadata/finishedOn',
      1706702400,
      '/runDetails/metadata/finishedOn must be a string or null',
    ],
    ['/runDetails/metadata/startedOn', '2024-02-29T23:59:60Z'],
  ];
  for (const [path, value, problem] of cases) {
    const expected = problem === undefined ? [] : [problem];
    t.strictSame(problemsOf(changed(provenance, path, value)), expected, `${path} ${JSON.stringify(value)}`);
  }
});

t.test('each problem of a test result is reported at its pointer', async (t) => {
  const cases: [path: string, value: JsonValue | undefined, problem: string][] = [
    ['/result', undefined, '/result is required'],
    ['/result', 'passed', '/result must be one of PASSED, WARNED, FAILED'],
    ['/result', true, '/result must be one of PASSED, WARNED, FAILED'],
    ['/configuration', undefined, '/configuration is required'],
    ['/configuration/0', {}, '/configuration/0 must have uri or digest or content'],
    ['/configuration/0/uri', 'ci.yml', '/configuration/0/uri must be an absolute URI'],
    ['/url', 'run 1', '/url must be an absolute URI'],
    ['/failedTests', [1], '/failedTests/0 must be a string'],
  ];
  for (const [path, value, problem] of cases) {
    t.strictSame(problemsOf(changed(testResult, path, value)), [problem], `${path} ${JSON.stringify(value)}`);
  }
});

t.test('a purl is checked by the rules of package URLs', async (t) => {
  t.strictSame(problemsOf({ schema: 'purl' }), ['/purl is required']);
  t.strictSame(problemsOf({ schema: 'purl', purl: null }), ['/purl must be a string']);
  t.strictSame(problemsOf({ schema: 'purl', purl: 'left-pad' }), [
    '/purl is not a package URL: it does not begin with pkg:',
  ]);
  t.strictSame(problemsOf(JSON.parse('{"schema":"purl","__proto__":{"purl":"pkg:npm/a"}}')), [
    '/purl is required',
  ]);
});

t.test('all problems are reported together, each once, by pointer and in a stable order', async (t) => {
  const metadata = {
    schema: 'slsa.provenance.v1',
    runDetails: { builder: {}, byproducts: Array.from({ length: 12 }, () => 0) },
    buildDefinition: { buildType: 1 },
  };
  const expected = [
    '/buildDefinition/buildType must be a string',
    '/buildDefinition/externalParameters is required',
    '/runDetails/builder/id is required',
    ...Array.from({ length: 12 }, (_, index) => `/runDetails/byproducts/${index} must be an object`),
  ];
  t.strictSame(problemsOf(metadata), expected);
  t.strictSame(problemsOf(metadata), expected, 'again');
  const { schema, runDetails, buildDefinition } = metadata;
  t.strictSame(problemsOf({ buildDefinition, runDetails, schema }), expected, 'members in another order');
});

t.test(
  'null and empty count as not given in a provenance, and are missing where something is needed',
  async (t) => {
    const optional: Record<string, JsonValue> = {
      '/buildDefinition/internalParameters': {},
      '/buildDefinition/resolvedDependencies': [],
      '/buildDefinition/resolvedDependencies/0/name': '',
      '/buildDefinition/resolvedDependencies/0/uri': '',
      '/buildDefinition/resolvedDependencies/0/digest': {},
      '/buildDefinition/resolvedDependencies/1/mediaType': '',
      '/buildDefinition/resolvedDependencies/1/annotations': {},
      '/buildDefinition/resolvedDependencies/2/downloadLocation': '',
      '/runDetails/builder/version': {},
      '/runDetails/builder/builderDependencies': [],
      '/runDetails/metadata': {},
      '/runDetails/metadata/invocationId': '',
      '/runDetails/metadata/startedOn': '',
      '/runDetails/metadata/finishedOn': '',
      '/runDetails/byproducts': [],
    };
    for (const [path, empty] of Object.entries(optional)) {
      for (const value of [null, empty]) t.strictSame(problemsOf(changed(provenance, path, value)), [], path);
    }
    for (const path of ['/buildDefinition', '/buildDefinition/externalParameters', '/runDetails/builder']) {
      t.strictSame(problemsOf(changed(provenance, path, null)), [`${path} must be an object`]);
    }
    const resources: JsonValue[] = [{ uri: null }, { uri: '' }, { digest: {} }, { content: '' }];
    for (const resource of resources) {
      const [first] = problemsOf(changed(provenance, '/buildDefinition/resolvedDependencies/0', resource));
      const problem = '/buildDefinition/resolvedDependencies/0 must have uri or digest or content';
      t.equal(first, problem, JSON.stringify(resource));
    }
  },
);

t.test('every problem of metadata of the maximum size is reported', async (t) => {
  const passedTests: JsonValue[] = Array.from({ length: 6000 }, (_, index) => `test-${index}`);
  passedTests[17] = 0;
  passedTests[5999] = null;
  t.strictSame(problemsOf({ ...testResult, passedTests, result: 'OK' }), [
    '/passedTests/17 must be a string',
    '/passedTests/5999 must be a string',
    '/result must be one of PASSED, WARNED, FAILED',
  ]);
});

t.test('at most a hundred problems are reported', async (t) => {
  const many = problemsOf({ ...testResult, passedTests: Array.from({ length: 500 }, () => 0) });
  t.equal(many.length, 100);
  t.equal(many[99], '/passedTests/99 must be a string');
  const huge = problemsOf(
    changed(
      provenance,
      '/buildDefinition/resolvedDependencies',
      Array.from({ length: 30_000 }, () => ({})),
    ),
  );
  t.equal(huge.length, 100);
  t.equal(huge[99], '/buildDefinition/resolvedDependencies/99 must have uri or digest or content');
});

t.test('each pointer is reported once, with the total', async (t) => {
  const dependencies = (...items: JsonValue[]) =>
    changed(provenance, '/buildDefinition/resolvedDependencies', items);
  const totalOf = (metadata: JsonObject) => {
    const verdict = validateMetadata(registry, metadata);
    return 'total' in verdict ? verdict.total : 0;
  };
  const at = '/buildDefinition/resolvedDependencies';
  const cases: [item: JsonValue, problems: string[]][] = [
    [{}, [`${at}/0 must have uri or digest or content`]],
    [{ uri: '' }, [`${at}/0 must have uri or digest or content`]],
    [{ digest: {}, content: '' }, [`${at}/0 must have uri or digest or content`]],
    [0, [`${at}/0 must be an object`]],
    [{ uri: 5 }, [`${at}/0 has none of the allowed forms`, `${at}/0/uri must be a string or null`]],
  ];
  for (const [item, problems] of cases) {
    t.strictSame(problemsOf(dependencies(item)), problems, JSON.stringify(item));
    t.equal(totalOf(dependencies(item)), problems.length);
  }
  t.equal(totalOf(dependencies(...Array.from({ length: 20_000 }, () => ({})))), 20_000);
  t.equal(totalOf(dependencies(...Array.from({ length: 20_000 }, () => 0))), 20_000);
});

t.test('long and hostile values are answered with short messages that do not quote them', async (t) => {
  const long = 'secret'.repeat(10_000);
  const cases: JsonObject[] = [
    { schema: 'purl', purl: long },
    { schema: 'purl', purl: `pkg:npm/a?${long}%` },
    changed(provenance, '/buildDefinition/buildType', long),
    changed(provenance, '/buildDefinition/buildType', `a:${long} `),
    changed(provenance, '/buildDefinition/buildType', `http://${'a.'.repeat(30_000)} `),
    changed(provenance, '/buildDefinition/buildType', `http://[${'1:'.repeat(30_000)}`),
    changed(provenance, '/buildDefinition/buildType', `a:${'/'.repeat(60_000)}\n`),
    changed(provenance, '/runDetails/metadata/startedOn', `2024-01-31T12:00:00.${'0'.repeat(60_000)}x`),
    changed(provenance, '/buildDefinition/resolvedDependencies/1/content', `${'A'.repeat(60_000)}!`),
    changed(testResult, '/result', long),
  ];
  for (const metadata of cases) {
    const verdict = validateMetadata(registry, metadata);
    const errors = 'errors' in verdict ? verdict.errors : [];
    t.equal(errors.length, 1);
    for (const { message } of errors) {
      t.ok(message.length <= 200);
      t.notMatch(message, /secret/);
    }
  }
});

t.test('a pointer is escaped, and one to a very long name ends at the enclosing member', async (t) => {
  const named = (name: string) => changed(provenance, '/runDetails/builder/version', { [name]: 1 });
  t.strictSame(problemsOf(named('a/b~c')), ['/runDetails/builder/version/a~1b~0c must be a string']);
  t.strictSame(problemsOf(named('')), ['/runDetails/builder/version/ must be a string']);
  t.strictSame(problemsOf(named('ü\u{1f600}')), ['/runDetails/builder/version/ü\u{1f600} must be a string']);
  t.strictSame(problemsOf(named('x'.repeat(60_000))), ['/runDetails/builder/version must be a string']);
});
