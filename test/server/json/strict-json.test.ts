import t, { type Test } from 'tap';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import {
  isDeeperThan,
  isForbiddenText,
  JsonSyntaxError,
  parseJson,
} from '../../../src/server/json/strict-json.js';

const LIMITS = { maxDepth: 32 };

function parse(text: string, maxDepth = LIMITS.maxDepth): unknown {
  return parseJson(Buffer.from(text), { maxDepth });
}

/** Checks that the bytes are refused, with a message that has none of them beyond one character. */
function refuses(t: Test, input: string | Uint8Array, message: string | RegExp, name: string): void {
  const bytes = typeof input === 'string' ? Buffer.from(input) : input;
  try {
    parseJson(bytes, LIMITS);
    t.fail(`${name} is accepted`);
  } catch (error) {
    t.type(error, JsonSyntaxError, name);
    t.match((error as Error).message, message, name);
    t.ok((error as Error).message.length < 100, `${name}: a short message`);
    t.notMatch((error as Error).message, /secret/, `${name}: no quote`);
  }
}

t.test('a JSON text has the value that JSON.parse gives it', async (t) => {
  const texts = [
    'null',
    ' true ',
    '0',
    '-0',
    '1e3',
    '1.5E-7',
    '""',
    '"a\\"b\\\\"',
    '"\\u0041\\ud83d\\ude00"',
    '"{[:,]}"',
    '[]',
    '{}',
    '[1,[2,[3]]]',
    '{"":{"a:b":":"},"c":[{"d":1},{"d":2}]}',
    '{"ä":"ü€😀","\\u00e4b":1}',
    '\r\n\t{"a" : [ 1 , 2 ] }\n',
    '{"1":1,"0":0,"constructor":1,"toString":2}',
  ];
  for (const text of texts) t.strictSame(parse(text), JSON.parse(text), text);
});

t.test('text keeps every character beside any bytes', async (t) => {
  const text =
    'a'.repeat(300) + String.fromCodePoint(0x7f, 0x80, 0xff, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff);
  t.equal(parse(JSON.stringify(text)), text);
  const bytes = Buffer.from(`xx${JSON.stringify({ text })}yy`);
  t.strictSame(parseJson(bytes.subarray(2, -2), LIMITS), { text }, 'a part of a larger buffer');
  t.strictSame(parseJson(new Uint8Array(Buffer.from('[1]')), LIMITS), [1], 'bytes that are no Buffer');
});

t.test('numbers are doubles, however long they are written', async (t) => {
  t.equal(parse('9007199254740993.5'), 9007199254740994);
  t.equal(parse(`1${'0'.repeat(100_000)}`), Number.POSITIVE_INFINITY);
  t.equal(parse('-1e999'), Number.NEGATIVE_INFINITY);
  t.equal(parse(`0.${'0'.repeat(100_000)}1`), 0);
  t.equal(parse('1e-999999999999'), 0);
});

t.test('integers that a double does not give back are rejected, with where they are', async (t) => {
  const message = 'is an integer that JSON numbers do not hold exactly: send it as a string';
  const paths = ['/ids/1', '/ns'];
  t.throws(() => parse('{"ids":[9007199254740992,9007199254740993],"ns":1763812345678901234}'), {
    code: ErrorCode.REQUEST_INVALID,
    details: { errors: paths.map((path) => ({ path, message })) },
  });
});

t.test('a long number that is inexact is rejected in every place', async (t) => {
  const inexact = ['9007199254740993', '-9007199254740993.0', '900719925474099.3e1', `1${'0'.repeat(250)}1`];
  const held = ['9007199254740992', '123456789012345', '0.1234567890123456789', '1e400', '6.02214076e23'];
  const around: ((number: string) => string)[] = [
    (number) => number,
    (number) => ` \n${number} `,
    (number) => `[${number}]`,
    (number) => `[1,${number},2]`,
    (number) => `{"a":${number}}`,
    (number) => `{"1234567890":123456789012345,"b":[[${number}]]}`,
  ];
  for (const place of around) {
    for (const number of inexact) t.throws(() => parse(place(number)), /hold exactly/, place(number));
    for (const number of held) t.same(parse(place(number)), JSON.parse(place(number)), place(number));
  }
  t.same(parse('["9007199254740993"]'), ['9007199254740993'], 'digits of a text are not a number');
});

t.test('a member named __proto__ is a member and changes no prototype', async (t) => {
  const value = parse('{"__proto__":{"admin":true},"a":{"__proto__":null}}') as Record<string, object>;
  t.strictSame(Object.keys(value), ['__proto__', 'a']);
  t.equal(Object.getPrototypeOf(value), Object.prototype);
  t.equal(Object.getPrototypeOf(value.a), Object.prototype);
  t.notOk('admin' in value);
});

t.test('malformed JSON is rejected and not quoted', async (t) => {
  const texts: [text: string, message: RegExp][] = [
    ['', /end of JSON/],
    ['   ', /end of JSON/],
    ['{"secret":', /end of JSON|position/],
    ['{"secret":1', /position|end of JSON/],
    ['"secret', /string|end of JSON/],
    ['"secret\\', /string|end of JSON|escape/],
    ['"\\', /string|end of JSON|escape/],
    ['{"secret":x}', /^Unexpected token 'x'$/],
    ['{"secret":1,}', /property name/],
    ['[1,]', /Unexpected token '\]'/],
    ["{'secret':1}", /property name/],
    ['{secret:1}', /property name/],
    ['{"secret" 1}', /':'/],
    ['NaN', /NaN/],
    ['Infinity', /Infinity/],
    ['undefined', /undefined/],
    ['01', /number/],
    ['1.', /number/],
    ['+1', /Unexpected token '\+'/],
    ['0x10', /position/],
    ['1 2', /position/],
    ['{}{}', /position/],
    [']', /Unexpected token '\]'/],
    ['}}}}[[[[', /Unexpected token '\}'/],
    ['"a\nb"', /control character/],
    ['"\\x41"', /escape/],
    ['"\\ud83"', /escape/],
    ['// secret\n1', /Unexpected token '\/'/],
    ['"secret" "secret"', /position/],
  ];
  for (const [text, message] of texts) {
    refuses(t, text, message, JSON.stringify(text));
  }
});

t.test('bytes that are not UTF-8 are rejected, wherever they are', async (t) => {
  const cases: [name: string, bytes: number[]][] = [
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['a truncated sequence', [0x22, 0xe2, 0x82, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['more than U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['Latin-1', [0x22, 0xe4, 0x22]],
    ['outside of strings', [0x5b, 0xff, 0x5d]],
  ];
  for (const [name, bytes] of cases) refuses(t, Uint8Array.from(bytes), 'a JSON text must be in UTF-8', name);
  refuses(t, Uint8Array.from([0x22, 0x5c, 0xff, 0x22]), /UTF-8|escape/, 'after a backslash');
  refuses(t, Buffer.from('"a"', 'utf16le'), /./, 'UTF-16');
});

t.test('a byte order mark is rejected', async (t) => {
  refuses(t, '\ufeff{}', 'a JSON text must not begin with a byte order mark', 'UTF-8');
  refuses(t, Uint8Array.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]), /UTF-8/, 'UTF-16');
  t.equal(parse('"\ufeff"'), '\ufeff', 'within a string it is a character');
});

t.test('duplicate members are rejected, also with escapes in their names', async (t) => {
  for (const [text, ...paths] of [
    ['{"a":1,"a":2}', '/a'],
    ['{"a":1,"\\u0061":2}', '/a'],
    ['[[{"x":{"a":1,"b":2,"a":3}}]]', '/0/0/x/a'],
    ['{"a":{"b":1},"a":1}', '/a'],
    ['{"a":[{},{"b":{},"c":[],"b":":"}],"d/":1,"d/":2}', '/a/1/b', '/d~1'],
    ['{"__proto__":1,"__proto__":2}', '/__proto__'],
    ['{"":1,"":2}', '/'],
  ] as const) {
    const errors = paths.map((path) => ({ path, message: 'occurs twice' }));
    const thrown = t.throws(() => parse(text), { code: ErrorCode.REQUEST_INVALID });
    t.match(thrown, { details: { errors } }, text);
  }
  t.strictSame(parse('{"a":{"a":":"},"b":[{"a":1},{"a":1}]}'), { a: { a: ':' }, b: [{ a: 1 }, { a: 1 }] });
});

t.test('depth is bounded before anything is parsed', async (t) => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  t.strictSame(parse('1', 0), 1);
  t.throws(() => parse('[]', 0), { message: 'the JSON text is more than 0 levels deep' });
  t.ok(parse(nested(32)));
  t.throws(() => parse(nested(33)), { message: 'the JSON text is more than 32 levels deep' });
  t.ok(parse('[[],[],{"a":[]},{}]', 3), 'what is closed counts no more');
  t.ok(parse(`["${'['.repeat(1000)}\\"${'{'.repeat(1000)}"]`, 1), 'brackets in strings do not count');
  for (const opening of ['[', '{"a":', '[{"a":', '[1,']) {
    t.throws(() => parse(opening.repeat(100_000)), { message: /levels deep/ }, `100,000 times ${opening}`);
  }
  t.throws(() => parse(`x${'['.repeat(33)}`), { message: /levels deep/ }, 'even in what is no JSON');
});

t.test('large texts are read whole', async (t) => {
  const long = 'x'.repeat(1 << 20);
  t.equal((parse(`{"a":"${long}"}`) as { a: string }).a, long);
  t.equal((parse(`["${'\\"'.repeat(1 << 19)}"]`) as string[])[0]?.length, 1 << 19);
  t.equal((parse(`[${'0,'.repeat(1 << 18)}0]`) as number[]).length, (1 << 18) + 1);
  refuses(t, `{"${long}`, /string|end of JSON/, 'a string of 1 MiB that does not end');
  refuses(t, `${'"'.repeat(1 << 18)}`, /./, 'many quotes');
  refuses(t, `"${'\\'.repeat(1 << 20)}`, /./, 'many backslashes');
});

t.test('the depth of a value is compared without walking further than that', async (t) => {
  t.notOk(isDeeperThan(1, 0));
  t.notOk(isDeeperThan('x', 0));
  t.notOk(isDeeperThan(null, 0));
  t.ok(isDeeperThan({}, 0));
  t.ok(isDeeperThan([], 0));
  t.notOk(isDeeperThan({}, 1));
  t.notOk(isDeeperThan({ a: 1, b: [] }, 2));
  t.ok(isDeeperThan({ a: 1, b: [[]] }, 2));
  t.ok(isDeeperThan([1, 'x', null, { a: {} }], 2));
  const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
  t.ok(isDeeperThan(deep, 32));
  t.ok(isDeeperThan({ a: deep, b: deep }, 64));
});

t.test('text that cannot be stored is recognised', async (t) => {
  for (const text of ['a', '', '\u{1f600} \uffff \u0001', 'ü€😀']) t.notOk(isForbiddenText(text), text);
  const forbidden = ['\0', 'a\0b', '\ud800', 'a\udc00', '\udc00\ud800', `${'x'.repeat(1 << 20)}\0`];
  for (const text of forbidden) t.ok(isForbiddenText(text), JSON.stringify(text.slice(0, 9)));
});
