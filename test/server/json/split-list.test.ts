/** Splitting the list of a batch: what it yields is what JSON.parse reads, and nothing else passes. */
import fc from 'fast-check';
import t from 'tap';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../../src/server/core/errors.js';
import { splitJsonList } from '../../../src/server/json/split-list.js';
import { FUZZ } from '../../support/fuzz.js';

/** The parsed items of a text; undefined if it, or one of them, is rejected. */
function split(text: Uint8Array | string): unknown[] | undefined {
  const next = splitJsonList(Buffer.from(text), 'items');
  const items: unknown[] = [];
  try {
    for (let item = next(); item !== undefined; item = next())
      items.push(JSON.parse(Buffer.from(item).toString()));
    return items;
  } catch (error) {
    if (error instanceof ApiError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The items as JSON.parse has them; undefined if the text is no such object. */
function parsed(text: Uint8Array | string): unknown[] | undefined {
  try {
    const value = JSON.parse(Buffer.from(text).toString()) as { items?: unknown };
    const names = Object.keys(value);
    if (names.length === 0) return [];
    return names.length === 1 && Array.isArray(value.items) ? value.items : undefined;
  } catch {
    return undefined;
  }
}

const items = fc.array(fc.jsonValue(), { maxLength: 6 });
const spaces = fc.constantFrom(undefined, 1, '\t', '\r\n ');

t.test('it yields the items that a parser reads, and a text cut anywhere is rejected', async () => {
  fc.assert(
    fc.property(items, spaces, (list, space) => {
      const text = JSON.stringify({ items: list }, null, space);
      if (JSON.stringify(split(text)) !== JSON.stringify(list)) return false;
      const bytes = Buffer.from(text);
      for (let end = 1; end < bytes.length; end++)
        if (split(bytes.subarray(0, end)) !== undefined) return false;
      return true;
    }),
    { seed: FUZZ.seed, numRuns: FUZZ.cases },
  );
});

t.test('a changed byte never makes it accept what a parser rejects, or read other items', async () => {
  fc.assert(
    fc.property(items, fc.nat(), fc.constantFrom(...'{}[],:"\\ x0'), (list, at, byte) => {
      const bytes = Buffer.from(JSON.stringify({ items: list }));
      bytes.write(byte, at % bytes.length, 'latin1');
      const found = split(bytes);
      return found === undefined || JSON.stringify(found) === JSON.stringify(parsed(bytes));
    }),
    { seed: FUZZ.seed, numRuns: FUZZ.cases * 20 },
  );
});

t.test('other members and other values are invalid, and named', async (t) => {
  const problems: [text: string, path: string][] = [
    ['{"a~/b":1}', '/a~0~1b'],
    ['{"\\u0069tems":[1],"items":[]}', '/items'],
    ['{"items":{}}', '/items'],
    ['{"items":null}', '/items'],
    [' [1]', ''],
    ['-1', ''],
  ];
  for (const [text, path] of problems) {
    const next = splitJsonList(Buffer.from(text), 'items');
    const error = () => {
      for (let item = next(); item !== undefined; item = next());
    };
    t.throws(error, { code: ErrorCode.REQUEST_INVALID, details: { errors: [{ path }] } }, text);
  }
  t.same(split(''), []);
  t.same(split(' { } '), []);
  t.same(split('{"items":[ ]}'), []);
});
