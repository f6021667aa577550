/** Schemas of operators: which are read, what they say of metadata, and what is written about it. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { validateMetadata } from '../../../src/server/schema/registry.js';
import { problemsOf, withSchemas } from './operator-schemas.js';

const BUILT_IN = [
  'evaluation.v1',
  'intoto.test_result.v0.1',
  'purl',
  'scitt.statement.v1',
  'slsa.provenance.v1',
  'ui_snapshot.v1',
];

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
