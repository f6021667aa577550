import canonicalize from 'canonicalize';
import t from 'tap';
import { jcs } from '../../../src/proof/bytes/jcs.js';

/** The example of RFC 8785, section 3.2.2, and its canonical text (section 3.2.3). */
const RFC_INPUT = String.raw`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`;
const RFC_TEXT = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`;

t.test('the example of RFC 8785 has its canonical text', async (t) => {
  t.equal(jcs(JSON.parse(RFC_INPUT)), RFC_TEXT);
});

t.test('members are sorted by UTF-16 code units, not by code points', async (t) => {
  const names = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6', '10', '', '__proto__'];
  const value = JSON.parse(`{${names.map((name) => `${JSON.stringify(name)}:0`).join(',')}}`);
  const order = ['', '\r', '1', '10', '__proto__', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33'];
  t.equal(jcs(value), `{${order.map((name) => `${JSON.stringify(name)}:0`).join(',')}}`);
});

t.test('every value has the text that the library gives it', async (t) => {
  const values: unknown[] = [
    '\u0000\u001f"\\/\u007f\u2028',
    '\u{10ffff}',
    -0,
    1e21,
    123456789012345680000,
    5e-324,
    [],
    {},
    [[], [{}], { b: [1, { a: null }], a: '' }],
    [undefined, () => 1],
    { b: undefined, a: 1 },
    new Date(0),
    { c: { toJSON: () => ({ z: 1, y: 2 }) }, a: 1 },
    Object.assign(Object.create(null), { b: 1, a: 2 }),
    Object.assign(Object.create({ inherited: 1 }), { b: 1, a: 2 }),
  ];
  for (const value of values) t.equal(jcs(value), canonicalize(value), JSON.stringify(value));
});

t.test('values that JSON cannot represent are rejected at any depth', async (t) => {
  const circle: unknown[] = [];
  circle.push({ circle });
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '\ud800', 'a\udc00b', undefined, circle]) {
    t.throws(() => jcs(value), { name: 'FormatError' });
    if (value !== undefined) t.throws(() => jcs({ b: 1, a: [value] }), { name: 'FormatError' });
  }
  t.throws(() => jcs({ '\ud800': 1 }), { name: 'FormatError' });
});
