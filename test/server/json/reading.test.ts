import type { JsonValue } from '@bufbuild/protobuf';
import t from 'tap';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../../src/server/core/errors.js';
import { compileReader } from '../../../src/server/json/codec.js';
import { parseJson } from '../../../src/server/json/strict-json.js';
import { EverythingSchema } from '../../gen/library/v1/library_pb.js';

const read = compileReader(EverythingSchema);

/** What `read` complains of, as `path: message`. */
function problemsOf(json: unknown, reader: (json: JsonValue) => unknown = read): string[] {
  try {
    reader(json as JsonValue);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== ErrorCode.REQUEST_INVALID) throw error;
    const { errors } = error.details as { errors: { path: string; message: string }[] };
    return errors.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

t.test('time stamps are read in every RFC 3339 form, and in no other', async (t) => {
  const good: [string, bigint, number][] = [
    ['2024-02-29T12:00:00Z', 1_709_208_000n, 0],
    ['2024-02-29t12:00:00z', 1_709_208_000n, 0],
    ['2024-02-29T12:00:00.5Z', 1_709_208_000n, 500_000_000],
    ['2024-02-29T12:00:00.123456789Z', 1_709_208_000n, 123_456_789],
    ['2024-02-29T14:30:00+02:30', 1_709_208_000n, 0],
    ['2024-02-29T00:00:00-12:00', 1_709_208_000n, 0],
    ['2024-02-29T12:00:00-00:00', 1_709_208_000n, 0],
    ['0001-01-01T00:00:00Z', -62_135_596_800n, 0],
    ['0000-12-31T23:00:00-01:00', -62_135_596_800n, 0],
    ['0099-03-01T00:00:00Z', -59_037_897_600n, 0],
    ['9999-12-31T23:59:59.999999999Z', 253_402_300_799n, 999_999_999],
  ];
  for (const [text, seconds, nanos] of good) {
    t.match(read({ timestamp: text }).timestamp, { seconds, nanos }, text);
  }
  const bad = [
    '2024-02-30T00:00:00Z',
    '2023-02-29T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-00-01T00:00:00Z',
    '2024-01-00T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T00:60:00Z',
    '2024-01-01T23:59:60Z',
    '2024-01-01T00:00:00',
    '2024-01-01T00:00:00.Z',
    '2024-01-01T00:00:00.1234567890Z',
    '2024-01-01 00:00:00Z',
    '2024-01-01T00:00Z',
    '2024-1-1T00:00:00Z',
    '2024-01-01',
    '1704067200',
    '',
    ' 2024-01-01T00:00:00Z',
    '2024-01-01T00:00:00+24:00',
    '2024-01-01T00:00:00+0100',
    '2024-01-01T00:00:00+01',
    '2024-01-01T00:00:00ZZ',
    '0000-12-31T23:59:59Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '10000-01-01T00:00:00Z',
    '+2024-01-01T00:00:00Z',
    '2024-01-01T00:00:00Z\n',
  ];
  for (const text of bad) {
    t.same(
      problemsOf({ timestamp: text }),
      ['/timestamp: must be an RFC 3339 time stamp, as in 2024-01-31T12:00:00Z'],
      JSON.stringify(text),
    );
  }
});

t.test('values of the wrong type or out of range are rejected in every spelling', async (t) => {
  const refused: [string, unknown[]][] = [
    ['int32_field', ['1', 1.5, null, true, [], {}, 2 ** 31, -(2 ** 31) - 1, 'NaN']],
    ['uint32_field', ['1', -1, 2 ** 32, 0.1]],
    ['int64_field', ['1', 2 ** 53, -(2 ** 53), 1.5, null]],
    ['uint64_field', [-1, '0', 2 ** 53]],
    ['text_int64_field', ['1', 2 ** 53]],
    ['double_field', ['1', 'nan', 'inf', '', null, Infinity, true]],
    ['float_field', [3.5e38, '1e5', null]],
    ['bool_field', ['true', 0, 1, null, []]],
    ['string_field', [1, null, ['a'], {}, '\0', '\ud800', 'a\udfffb']],
    ['bytes_field', ['a', 'YQ', 'YR==', 'Y Q=', 'YQ==\n', '-_8=', null, 5, [1]]],
    ['genre_field', ['GENRE_NOVEL', 'NOVEL', 1, '', null, 'GENRE_SECRET', 'toString', '__proto__']],
    ['optional_string', [null]],
    ['string_list', [null, 'a', {}, { 0: 'a', length: 1 }]],
    ['string_map', [null, [], 'a', [['a', 'b']]]],
    ['empty', [null, [], 'x', 0]],
    ['struct', [null, [], 'x', { a: '\0' }, { '\ud800': 1 }, { a: { b: [Infinity] } }]],
    ['value', ['\udc00', { a: ['\0'] }]],
    ['list_value', [null, {}, 'x', ['\0']]],
    ['duration', ['1', '1 s', '-', 's', '1.s', '1.0000000001s', '315576000001s', 1, '--1s', '+1s', '0x1s']],
    ['string_wrapper', [null, 1, { value: 'a' }]],
    ['int64_wrapper', ['1', { value: 1 }]],
    ['wrapper_list', [['a', null], [{ value: 'a' }]]],
    ['timestamp', [null, 0, {}, { seconds: 1 }]],
    ['recursive', [null, [], 'x', 1]],
  ];
  for (const [name, values] of refused) {
    for (const value of values) {
      const problems = problemsOf({ [name]: value });
      t.equal(problems.length, 1, `${name} ${JSON.stringify(value)}`);
      t.match(problems[0], `/${name}`);
    }
  }
});

t.test('members have the names of the proto', async (t) => {
  for (const name of [
    'stringField',
    'STRING_FIELD',
    'string_field ',
    '14',
    'unknown',
    '__proto__',
    'constructor',
    '',
  ]) {
    t.same(problemsOf(JSON.parse(`{${JSON.stringify(name)}: "x"}`)), [`/${name}: is not a known member`]);
  }
  t.same(problemsOf(JSON.parse('{"a/b~c\\ud800": 1}')), ['/a~1b~0c\ufffd: is not a known member']);
  t.same(problemsOf({ choice: { string_choice: 'a' } }), ['/choice: is not a known member']);
});

t.test('the body must be an object', async (t) => {
  for (const json of [null, [], 'x', 1, true]) t.same(problemsOf(json), [': must be an object']);
});

t.test('every problem is reported at its place, up to a hundred', async (t) => {
  t.same(
    problemsOf({
      message_list: [{}, { int32_list: 1, recursive: { bool_field: 1 } }],
      bool_map: { true: { string_field: 2 }, yes: {} },
      int32_map: { '1': '2', '01': 1, '2147483648': 1, x: 1 },
      genre_list: ['novel', 'x'],
      struct: { a: ['\0', { 'b/c': '\ud800' }] },
    }),
    [
      '/message_list/1/int32_list: is not a known member',
      '/message_list/1/recursive/bool_field: must be true or false',
      '/bool_map/true/string_field: must be a string',
      '/bool_map/yes: must be named true or false',
      '/int32_map/1: must be an integer',
      '/int32_map/2147483648: must be named by an integer in range',
      '/int32_map/01: must be named by an integer in range',
      '/int32_map/x: must be named by an integer in range',
      '/genre_list/1: must be one of novel, field.guide',
      '/struct/a/0: must not hold U+0000 or a lone surrogate',
      '/struct/a/1/b~1c: must not hold U+0000 or a lone surrogate',
    ],
  );
  t.equal(problemsOf({ bool_list: Array.from({ length: 5000 }, () => 1) }).length, 100);
  t.same(problemsOf({ string_choice: 'a', int64_choice: 1 }), [
    '/int64_choice: excludes string_choice, which is given too',
  ]);
  t.same(problemsOf(JSON.parse('{"string_map": {"__proto__": "x", "\\u0000": "y"}}')), [
    '/string_map/__proto__: must not be named __proto__',
    '/string_map/\0: must not hold U+0000 or a lone surrogate',
  ]);
});

t.test('the members of a Struct are unchanged, also one named __proto__', async (t) => {
  const json = parseJson(Buffer.from('{"struct":{"__proto__":{"admin":true},"camelCase":null}}'), {
    maxDepth: 9,
  });
  const { struct } = read(json);
  t.same(Object.keys(struct ?? {}), ['__proto__', 'camelCase']);
  t.notOk('admin' in (struct ?? {}));
  t.equal(({} as { admin?: boolean }).admin, undefined);
});
