import t from 'tap';
import { parseTemplate, routePattern } from '../../../../src/server/http/rest/http-rule.js';

t.test('templates that follow the grammar are parsed', async (t) => {
  const good: [template: string, pattern: string, variables: string][] = [
    ['/v1/books', '/v1/books', ''],
    ['/v1/books/{id}', '/v1/books/:s2', 'id=2-3'],
    ['/v1/{name=shelves/*/books/*}', '/v1/shelves/:s2/books/:s4', 'name=1-5 multi'],
    ['/v1/{name=shelves/*}/books/{book.id}', '/v1/shelves/:s2/books/:s4', 'name=1-3 multi,book.id=4-5'],
    ['/v1/{a.b_c.d9=*}', '/v1/:s1', 'a.b_c.d9=1-2'],
    ['/v1/{path=**}', '/v1/*', 'path=1-end multi'],
    ['/v1/**', '/v1/*', ''],
    ['/**', '/*', ''],
    ['/*', '/:s0', ''],
    ['/v1/*/{id}/**', '/v1/:s1/:s2/*', 'id=2-3'],
    ['/v1/books:search', '/v1/books::search', ''],
    ['/v1/books/{id}/{format=book.tlog-proof}', '/v1/books/:s2/book.tlog-proof', 'id=2-3,format=3-4'],
    ['/v1/.well-known/...', '/v1/.well-known/...', ''],
  ];
  for (const [source, pattern, variables] of good) {
    const template = parseTemplate(source);
    t.equal(routePattern(template), pattern, source);
    const found = template.variables.map(
      ({ fieldPath, start, end, isMulti }) =>
        `${fieldPath.join('.')}=${start}-${end ?? 'end'}${isMulti ? ' multi' : ''}`,
    );
    t.equal(found.join(','), variables, source);
  }
});

t.test('a malformed template is rejected with the column', async (t) => {
  const bad: [string, RegExp][] = [
    ['', /column 1: expected "\/"/],
    ['v1/books', /column 1: expected "\/"/],
    ['/', /column 2: expected a segment/],
    ['/v1/books/', /column 11: expected a segment/],
    ['/v1//books', /column 5: expected a segment/],
    ['/v1/books?x=1', /column 10: unexpected "\?"/],
    ['/v1/books#x', /column 10: unexpected "#"/],
    ['/v1/my books', /column 7: unexpected " "/],
    ['/v1/bücher', /column 6: unexpected "ü"/],
    ['/v1/books*', /column 10: unexpected "\*"/],
    ['/v1/***', /column 7: unexpected "\*"/],
    ['/v1/*x', /column 6: unexpected "x"/],
    ['/v1/**/books', /\*\* is only allowed as the last segment/],
    ['/v1/{a=**}/{b}', /\*\* is only allowed as the last segment/],
    ['/v1/{a=**/b}', /\*\* is only allowed as the last segment/],
    ['/v1/{}', /column 6: expected a field path/],
    ['/v1/{1a}', /column 6: expected a field path/],
    ['/v1/{a.}', /column 7: expected "}"/],
    ['/v1/{a', /column 7: expected "}"/],
    ['/v1/{a/b}', /column 7: expected "}"/],
    ['/v1/{a=}', /column 8: expected a segment/],
    ['/v1/{a}b', /column 8: unexpected "b"/],
    ['/v1/x{a}', /column 6: unexpected "{"/],
    ['/v1/{a=x/{b}}', /a variable inside a variable/],
    ['/v1/{a}/{a}', /a is bound twice/],
    ['/v1/books:', /column 11: expected a verb/],
    ['/v1/books:a:b', /column 12: unexpected ":"/],
    ['/v1/books:a/b', /column 12: unexpected "\/"/],
    ['/v1/{a:lend}', /column 7: expected "}"/],
    ['/v1/%zz', /column 5: expected a segment/],
    ['/v1/../x', /dot segment/],
    ['/v1/{a}:lend', /a verb is only allowed after a literal/],
    ['/v1/{a=**}:lend', /a verb is only allowed after a literal/],
  ];
  for (const [source, message] of bad) t.throws(() => parseTemplate(source), message, source);
});
