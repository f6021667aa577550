import t from 'tap';
import { findInexactIntegers } from '../../src/protocol/inexact-integers.js';

t.test('integers that a double does not represent exactly are listed', async (t) => {
  const changed = [
    '9007199254740993',
    '-9007199254740993',
    '9007199254740993.0',
    '9007199254740993e0',
    '900719925474099.3e1',
    '90071992547409930e-1',
    '9007199254740993.000e+0',
    '12345678901234567890',
    '1763812345678901234',
    '18446744073709551615',
    '9223372036854775807',
    '9223372036854775808',
    '1152921504606846976',
    '1000000000000000000001',
    '3.141592653589793238462643e24',
    `1${'0'.repeat(250)}1`,
  ];
  for (const number of changed) t.strictSame(findInexactIntegers(`[${number}]`), ['/0'], number);
  const held = [
    '0',
    '-0',
    '0.0',
    '0e5',
    '1',
    '-1',
    '5.0',
    '1e3',
    '1E+3',
    '9007199254740991',
    '-9007199254740991',
    '9007199254740992',
    '9007199254740994',
    '9007199254740992.0',
    '1764000000000000000',
    '1152921504606847000',
    '100000000000000000000',
    '1e20',
    '1e21',
    '1e22',
    '6.02214076e23',
    '1e300',
    '1234567890123456700e2',
    '0.1',
    '0.1234567890123456789',
    '3.14159265358979323846',
    '12345678901234567.5',
    '5e-324',
    '1e-400',
    '1e400',
    '-1e999',
    '1000000000000000000000000000000',
  ];
  for (const number of held) t.strictSame(findInexactIntegers(`[${number}]`), [], number);
});

t.test('accepted numbers are accepted in canonical form as well', async (t) => {
  for (let exponent = 0; exponent < 30; exponent++) {
    for (const digits of [
      '1',
      '9007199254740993',
      '123456789',
      '-7',
      '17638123456789012',
      '4503599627370497',
    ]) {
      const text = `${digits}e${exponent}`;
      const isTaken = findInexactIntegers(text).length === 0;
      const canonical = JSON.stringify(Number(text));
      t.strictSame(findInexactIntegers(canonical), [], `${text} is ${canonical}`);
      t.equal(isTaken, denoted(canonical) === BigInt(digits) * 10n ** BigInt(exponent), text);
    }
  }
});

/** The integer that a spelling of JSON.stringify denotes. */
function denoted(text: string): bigint {
  const [mantissa = '', power = '0'] = text.split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(Number(power) - fraction.length);
}

t.test('each has its JSON pointer, and digits inside a string are no integer', async (t) => {
  const big = '9007199254740993';
  const cases: [json: string, pointers: string[]][] = [
    [big, ['']],
    [` [ 1 , ${big} ] `, ['/1']],
    [`{"a":{"b":[0,{"c":${big}},[]],"d":${big}},"e":${big}}`, ['/a/b/1/c', '/a/d', '/e']],
    [`{"a/b":{"~":${big}},"\\u0061\\"":${big},"":[[],{},${big}]}`, ['/a~1b/~0', '/a"', '//2']],
    [`{"\\ud800":${big}}`, ['/\ufffd']],
    [`{"a":"${big}","${big}":1,"b":"\\"${big}","c":"x,${big}]","d":${big}}`, ['/d']],
    [`{"__proto__":${big},"constructor":{"x":${big}}}`, ['/__proto__', '/constructor/x']],
    [`{"a":${big},"a":1}`, ['/a']],
    [`[true,null,false,"",${big}]`, ['/4']],
    [`[${Array(200).fill(big).join()}]`, Array.from({ length: 100 }, (_, i) => `/${i}`)],
  ];
  for (const [json, pointers] of cases) t.strictSame(findInexactIntegers(json), pointers, json.slice(0, 80));
});

t.test('a long text is looked through once', async (t) => {
  const zeros = `1${'0'.repeat(400_000)}1${'0'.repeat(400_000)}`;
  const texts = [
    zeros,
    `[${zeros}e-800000]`,
    `0.${zeros}`,
    `"${'\\"'.repeat(400_000)}9007199254740993"`,
    `[${'9007199254740993.5,'.repeat(50_000)}1]`,
  ];
  for (const text of texts) t.type(findInexactIntegers(text), Array);
});
