import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import {
  loadSchemas,
  SchemaLoadError,
  type SchemaRegistry,
  validateMetadata,
} from '../../../src/server/schema/registry.js';

const BUILT_IN = [
  'evaluation.v1',
  'intoto.test_result.v0.1',
  'purl',
  'scitt.statement.v1',
  'slsa.provenance.v1',
  'ui_snapshot.v1',
];

/** The problems of metadata, a line each; none when it is valid. */
function problemsOf(metadata: JsonObject, schemas: SchemaRegistry): string[] {
  const verdict = validateMetadata(schemas, metadata);
  return !('errors' in verdict) ? [] : verdict.errors.map(({ path, message }) => `${path} ${message}`);
}

/** A registry with schemas of an operator, by their files' names. */
function withSchemas(t: Test, files: Record<string, unknown>): SchemaRegistry {
  const dir = t.testdir(
    Object.fromEntries(
      Object.entries(files).map(([name, schema]) => [
        name,
        typeof schema === 'string' ? schema : JSON.stringify(schema),
      ]),
    ),
  );
  return loadSchemas({ dir });
}

t.test('an operator adds schemas as files', async (t) => {
  const schemas = withSchemas(t, {
    'eval.v1.json': {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/eval',
      type: 'object',
      required: ['score'],
      additionalProperties: false,
      properties: {
        schema: { type: 'string' },
        score: { type: 'number', minimum: 0, maximum: 1 },
        labels: { type: 'array', minItems: 1, uniqueItems: true, items: { $ref: '#/$defs/label' } },
        names: { type: 'object', propertyNames: { pattern: '^[a-z]+$' } },
        when: { type: 'string', format: 'date' },
        mode: { const: 'fast' },
        contact: { oneOf: [{ required: ['mail'] }, { required: ['phone'] }] },
        either: { anyOf: [{ type: 'string' }, { type: 'integer', minimum: 3 }] },
        part: { type: ['string', 'null'], maxLength: 3 },
        list: { contains: { type: 'string' } },
      },
      dependentRequired: { when: ['mode'] },
      if: { properties: { score: { const: 1 } }, required: ['score'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['labels'] },
      $defs: { label: { type: 'string', pattern: '^[a-z]+$' } },
    },
    'other.json': {
      $id: 'https://example.com/eval',
      properties: { schema: true, x: { $ref: '#/$defs/x' } },
      $defs: { x: { type: 'null' } },
    },
    '.hidden.json': 'not read',
    'notes.txt': 'not read',
  });
  t.strictSame([...schemas.keys()], ['eval.v1', ...BUILT_IN, 'other'].sort());
  const cases: [members: JsonObject, ...problems: string[]][] = [
    [{ score: 0.5 }],
    [{ score: 0.5, part: null }],
    [{}, '/score is required'],
    [{ score: 2 }, '/score must be <= 1'],
    [{ score: 0, extra: 1 }, '/extra is not a known member'],
    [{ score: 1 }, '/labels is required'],
    [{ score: 0, labels: [] }, '/labels is empty'],
    [
      { score: 0, labels: ['A', 'A'] },
      '/labels must NOT have duplicate items (items ## 0 and 1 are identical)',
      '/labels/0 must match pattern "^[a-z]+$"',
      '/labels/1 must match pattern "^[a-z]+$"',
    ],
    [{ score: 0, names: { ok: 1, NO: 2 } }, '/names/NO has a name that is not allowed'],
    [{ score: 0, when: 'today', mode: 'fast' }, '/when must be a date, as in 2024-01-31'],
    [{ score: 0, when: '2024-01-31' }, '/mode is required beside when'],
    [{ score: 0, mode: 'slow' }, '/mode must be fast'],
    [{ score: 0, contact: {} }, '/contact must have mail or phone'],
    [{ score: 0, contact: { mail: 1, phone: 1 } }, '/contact has more than one of the allowed forms'],
    [{ score: 0, either: 1 }, '/either has none of the allowed forms'],
    [{ score: 0, either: true }, '/either must be a string or an integer'],
    [{ score: 0, list: [1, 2, {}] }, '/list must contain at least 1 valid item(s)'],
    [{ score: 0, part: 'long' }, '/part must NOT have more than 3 characters'],
    [{ score: 0, part: 1 }, '/part must be a string or null'],
  ];
  for (const [members, ...problems] of cases) {
    t.strictSame(problemsOf({ schema: 'eval.v1', ...members }, schemas), problems, JSON.stringify(members));
  }
  t.strictSame(problemsOf({ schema: 'other', x: 1 }, schemas), ['/x must be null']);
});

t.test('a message about a long choice is cut between characters', async (t) => {
  const schemas = withSchemas(t, {
    'a.json': {
      properties: { x: { enum: [`x${'\u{1f600}'.repeat(300)}`] }, y: { enum: ['\u{1f600}'.repeat(300)] } },
    },
  });
  const verdict = validateMetadata(schemas, { schema: 'a', x: 1, y: 1 });
  const errors = 'errors' in verdict ? verdict.errors : [];
  t.equal(errors.length, 2);
  for (const { message } of errors) {
    t.ok(message.length <= 200);
    t.match(message, /^must be one of .*…$/su);
    t.equal(Buffer.from(message).toString(), message);
  }
});

t.test('text made to take long is answered by every format of JSON Schema', async (t) => {
  const formats = [
    'date-time',
    'date',
    'time',
    'duration',
    'email',
    'hostname',
    'ipv4',
    'ipv6',
    'uri',
    'uuid',
  ];
  const international = ['iri', 'iri-reference', 'idn-hostname', 'idn-email'];
  const more = [
    ...international,
    'uri-reference',
    'uri-template',
    'json-pointer',
    'relative-json-pointer',
    'regex',
  ];
  const schemas = withSchemas(t, {
    'all.json': {
      properties: Object.fromEntries([...formats, ...more].map((format) => [format, { format }])),
    },
  });
  const texts = [
    'ü',
    'ü.',
    'http://ü/',
    'http://a:1@::',
    'a.',
    '1:',
    '%20',
    'a@',
    '{a}',
    '0',
    '~0',
    '-',
    '(',
  ];
  for (const text of texts) {
    const long = `${text.repeat(60_000 / text.length)} \n`;
    const metadata = Object.fromEntries([...formats, ...more].map((format) => [format, long]));
    const problems = problemsOf({ schema: 'all', ...metadata }, schemas);
    t.ok(problems.length >= formats.length, text);
    t.ok(problems.join().length < 2000, text);
  }
});

t.test('formats of text in any script are those of their ASCII form', async (t) => {
  const schemas = withSchemas(t, {
    'i.json': {
      properties: Object.fromEntries(
        ['iri', 'iri-reference', 'idn-hostname', 'idn-email'].map((format) => [format, { format }]),
      ),
    },
  });
  const texts: Record<string, { good: string[]; bad: string[] }> = {
    iri: { good: ['https://bücher.example/ü?ü#ü', 'urn:a:b'], bad: ['/ü', 'https://a b', 'ü', 'a:\ud800'] },
    'iri-reference': { good: ['/ü', '../ä', '#ö', 'https://a.example', ''], bad: ['a b', '%', '\\ü'] },
    'idn-hostname': {
      good: ['bücher.example', 'example.com', '例え.テスト'],
      bad: ['ü b', 'ü/a', 'a/b', 'ü_a', '-a', `${'ü'.repeat(300)}`],
    },
    'idn-email': {
      good: ['jörg@bücher.example', 'a@b.example'],
      bad: ['jörg', '@ü.example', 'a@ü/b', 'a b@ü.example'],
    },
  };
  for (const [format, { good, bad }] of Object.entries(texts)) {
    for (const text of good) t.strictSame(problemsOf({ schema: 'i', [format]: text }, schemas), [], text);
    for (const text of bad) t.equal(problemsOf({ schema: 'i', [format]: text }, schemas).length, 1, text);
  }
});

t.test('annotations of a schema are no mistakes', async (t) => {
  const schemas = withSchemas(t, {
    'a.json': {
      'x-owner': 'team',
      deprecated: true,
      $comment: 'c',
      properties: {
        n: { type: 'integer', format: 'int64', 'x-order': 1, examples: [1], default: 0, readOnly: true },
        doc: { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' },
        'x-extra': { type: 'string' },
      },
      required: ['x-extra'],
    },
  });
  t.strictSame(problemsOf({ schema: 'a', n: 1, doc: '!', 'x-extra': 'e' }, schemas), []);
  t.strictSame(problemsOf({ schema: 'a', n: 'x', 'x-extra': 1 }, schemas), [
    '/n must be an integer',
    '/x-extra must be a string',
  ]);
});

t.test('a recursive schema is followed through metadata of any allowed depth', async (t) => {
  const schemas = withSchemas(t, {
    'tree.json': { properties: { child: { $ref: '#' }, leaf: { type: 'string' } } },
  });
  const nested = (depth: number): JsonObject => (depth === 0 ? { leaf: 1 } : { child: nested(depth - 1) });
  t.strictSame(problemsOf({ schema: 'tree', ...nested(30) }, schemas), [
    `${'/child'.repeat(30)}/leaf must be a string`,
  ]);
  const wide = withSchemas(t, {
    'forest.json': {
      properties: { trees: { type: 'array', items: { $ref: '#/$defs/tree' } } },
      $defs: { tree: { properties: { child: { $ref: '#/$defs/tree' } }, required: ['leaf'] } },
    },
  });
  const forest = (trees: number) => ({ schema: 'forest', trees: Array.from({ length: trees }, () => ({})) });
  t.equal(problemsOf(forest(90), wide).length, 90);
  t.strictSame(problemsOf(forest(20_000), wide), ['/trees/0/leaf is required'], 'the first of very many');
});

t.test('a file may begin with a byte order mark', async (t) => {
  const schemas = withSchemas(t, { 'marked.json': '\ufeff{"properties":{"x":{"type":"string"}}}' });
  t.strictSame(problemsOf({ schema: 'marked', x: 1 }, schemas), ['/x must be a string']);
});

t.test('unusable files are reported together, each by its path', async (t) => {
  const remote = { $ref: 'https://example.com/other.json' };
  const files: Record<string, [schema: unknown, problem: string]> = {
    'Upper.json': [{}, 'its name must be at most 64 of a-z, 0-9, ., _ and -, from a letter or digit on'],
    '-dash.json': [{}, 'its name must be'],
    [`${'x'.repeat(65)}.json`]: [{}, 'its name must be'],
    'purl.json': [{}, 'there is another schema named purl'],
    'text.json': ['{"type":', 'it is not JSON:'],
    'list.json': [[], 'it must hold a JSON object'],
    'true.json': ['true', 'it must hold a JSON object'],
    'draft7.json': [
      { $schema: 'http://json-schema.org/draft-07/schema#' },
      'its $schema must be https://json-schema.org/draft/2020-12/schema',
    ],
    'async.json': [{ $async: true }, 'it must not have $async'],
    'type.json': [{ properties: { x: { type: 'text' } } }, 'it is not a JSON Schema: /properties/x/type'],
    'keyword.json': [{ propertys: {} }, 'strict mode: unknown keyword: "propertys"'],
    'format.json': [{ properties: { x: { format: 'colour' } } }, 'unknown format "colour"'],
    'url.json': [{ properties: { x: { format: 'url' } } }, 'unknown format "url"'],
    'pattern.json': [{ properties: { x: { pattern: '(' } } }, 'Invalid regular expression: '],
    'remote.json': [
      { properties: { x: remote } },
      'it refers to https://example.com/other.json, which is not in the file',
    ],
    'sibling.json': [
      { properties: { x: { $ref: 'purl.json' } } },
      'it refers to purl.json, which is not in the file',
    ],
    'nowhere.json': [
      { properties: { x: { $ref: '#/$defs/x' } } },
      'it refers to #/$defs/x, which is not in the file',
    ],
    'closed.json': [{ additionalProperties: false }, 'it must allow a member schema with the value closed'],
    'named.json': [
      { properties: { schema: { const: 'other' } } },
      'it must allow a member schema with the value named',
    ],
    'relative.json': [{ 'x-predicate-type': 'test/v1' }, 'its x-predicate-type must be an absolute URI'],
    'spaced.json': [{ 'x-predicate-type': 'urn:a b' }, 'its x-predicate-type must be an absolute URI'],
    'number.json': [{ 'x-predicate-type': 7 }, 'its x-predicate-type must be an absolute URI'],
    'long.json': [
      { 'x-predicate-type': `urn:${'x'.repeat(509)}` },
      'its x-predicate-type must be an absolute URI of at most 512 characters',
    ],
    'ours.json': [
      { 'x-predicate-type': 'URN:attestation-service:submission:v1' },
      'its x-predicate-type must not begin with urn:attestation-service:',
    ],
    'large.json': [`{"title":"${'x'.repeat(1 << 20)}"}`, 'it is larger than 1 MiB'],
  };
  const dir = t.testdir({ 'good.json': '{}' });
  for (const [name, [schema]] of Object.entries(files)) {
    writeFileSync(join(dir, name), typeof schema === 'string' ? schema : JSON.stringify(schema));
  }
  mkdirSync(join(dir, 'folder.json'));
  files['folder.json'] = ['', 'it is not a file'];
  try {
    loadSchemas({ dir });
    t.fail('they are accepted');
  } catch (error) {
    t.type(error, SchemaLoadError);
    const [title, ...lines] = (error as Error).message.split('\n');
    t.equal(title, 'metadata schemas cannot be used:');
    t.equal(lines.length, Object.keys(files).length, lines.join('\n'));
    for (const [name, [, problem]] of Object.entries(files)) {
      const line = lines.find((one) => one.startsWith(`${join(dir, name)}: `)) ?? '';
      t.ok(line.startsWith(`${join(dir, name)}: ${problem}`), `${name}: ${line.slice(dir.length)}`);
    }
  }
});

t.test('a schema says by an annotation of which type public statements are', async (t) => {
  const schemas = withSchemas(t, {
    'scan.json': {
      'x-predicate-type': 'https://example.com/scan/v1',
      properties: { found: { type: 'number' } },
    },
    'inner.json': { properties: { a: { 'x-predicate-type': 'https://example.com/inner' } } },
  });
  const types = [...schemas].map(([name, { predicateType }]) => [name, predicateType]);
  t.strictSame(types, [
    ['evaluation.v1', 'urn:attestation-service:evaluation:v1'],
    ['inner', undefined],
    ['intoto.test_result.v0.1', 'https://in-toto.io/attestation/test-result/v0.1'],
    ['purl', undefined],
    ['scan', 'https://example.com/scan/v1'],
    ['scitt.statement.v1', undefined],
    ['slsa.provenance.v1', 'https://slsa.dev/provenance/v1'],
    ['ui_snapshot.v1', undefined],
  ]);
  t.ok(validateMetadata(schemas, { schema: 'scan', found: 1 }).ok);
});

t.test('a missing directory is reported', async (t) => {
  t.throws(() => loadSchemas({ dir: join(t.testdir({}), 'gone') }), { message: /gone: ENOENT/ });
});
