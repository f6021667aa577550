import t from 'tap';
import { ListBooksRequestSchema } from '../../../gen/library/v1/library_pb.js';
import { ask, askJson, lastMessage, problems, startLibrary } from './rest-library.js';

t.test('query parameters become fields', async (t) => {
  const library = await startLibrary(t);
  const table: [query: string, message: unknown][] = [
    ['', {}],
    ['?', {}],
    ['?&&', {}],
    ['?limit=5&cursor=c', { limit: 5, cursor: 'c' }],
    ['?cursor=', {}],
    ['?cursor=a%20b+c%2Bd%26e=f', { cursor: 'a b c+d&e=f' }],
    ['?%63ursor=x', { cursor: 'x' }],
    [
      '?genre=field.guide&genres=novel&genres=field.guide',
      { genre: 'GENRE_FIELD_GUIDE', genres: ['GENRE_NOVEL', 'GENRE_FIELD_GUIDE'] },
    ],
    ['?tags=a,b&tags=&tags=c', { tags: ['a,b', '', 'c'] }],
    ['?added_after=2024-01-01T00:00:00Z', { added_after: '2024-01-01T00:00:00Z' }],
    ['?added_after=2024-01-01T00:00:00%2B01:00', { added_after: '2023-12-31T23:00:00Z' }],
    ['?added_after=2024-01-01T00:00:00+01:00', { added_after: '2023-12-31T23:00:00Z' }],
    ['?within=1.5s', { within: '1.500s' }],
    ['?shelf=&copies=0', { shelf: '', copies: '0' }],
    ['?filter.author=x&filter.not.author=y', { filter: { author: 'x', not: { author: 'y' } } }],
    ['?lent=true&by_age=false', { lent: true, by_age: false }],
    ['?rating=-1.5e3&min_copies=9007199254740991', { rating: -1500, min_copies: '9007199254740991' }],
    ['?rating=Infinity', { rating: 'Infinity' }],
    ['?digest=%2B/8=', { digest: '+/8=' }],
    ['?digest=+/8=', { digest: '+/8=' }],
  ];
  for (const [query, message] of table) {
    t.equal((await ask(library, `GET /v1/books${query}`)).status, 200, query);
    t.same(lastMessage(library, ListBooksRequestSchema), message, query);
  }
});

t.test('query parameters that do not fit are rejected, each by name', async (t) => {
  const library = await startLibrary(t);
  const unknown = (name: string) => [`/${name}: is not a known parameter`];
  const table: [query: string, problems: string[]][] = [
    ['nextCursor=x', unknown('nextCursor')],
    ['addedAfter=x', unknown('addedAfter')],
    ['tags[]=x', unknown('tags[]')],
    ['__proto__=x', unknown('__proto__')],
    ['=x', unknown('')],
    ['filter..author=x', unknown('filter..author')],
    ['filter.nothing=x', unknown('filter.nothing')],
    ['cursor.x=1', unknown('cursor.x')],
    ['added_after.seconds=1', unknown('added_after.seconds')],
    ['filters.author=x', unknown('filters.author')],
    [`filter.${'not.'.repeat(100)}author=x`, unknown(`filter.${'not.'.repeat(100)}author`)],
    // No pointer is as long as a query can be.
    [`filter.${'not.'.repeat(3000)}author=x`, [': is not a known parameter']],
    ['filter=x', ['/filter: cannot be given as a query parameter']],
    ['filters=x', ['/filters: cannot be given as a query parameter']],
    ['labels=x', ['/labels: cannot be given as a query parameter']],
    ['extra=x', ['/extra: cannot be given as a query parameter']],
    ['limit=1&limit=1', ['/limit: is given more than once']],
    ['filter.author=x&filter.author=y', ['/filter.author: is given more than once']],
    ['by_field=x&by_age=true', ['/by_age: excludes by_field, which is given too']],
    ['limit=', ['/limit: must be an integer']],
    ['limit', ['/limit: must be an integer']],
    ['limit=1.5&limit=x', ['/limit: must be an integer', '/limit: is given more than once']],
    ['limit=05', ['/limit: must be an integer']],
    ['limit=%2B5', ['/limit: must be an integer']],
    ['limit=0x10', ['/limit: must be an integer']],
    ['limit=2147483648', ['/limit: must be between -2147483648 and 2147483647']],
    ['min_copies=9007199254740992', ['/min_copies: must be between 0 and 9007199254740991']],
    ['lent=1', ['/lent: must be true or false']],
    ['lent=', ['/lent: must be true or false']],
    ['genre=NOVEL', ['/genre: must be one of novel, field.guide']],
    ['genre=1', ['/genre: must be one of novel, field.guide']],
    ['added_after=yesterday', ['/added_after: must be an RFC 3339 time stamp, as in 2024-01-31T12:00:00Z']],
    ['copies=many', ['/copies: must be an integer']],
    ['cursor=%zz', ['/cursor: is not percent-encoded UTF-8']],
    ['cursor=%ff', ['/cursor: is not percent-encoded UTF-8']],
    ['%ff=x', ['/%ff: is not percent-encoded UTF-8']],
    ['cursor=a%00', ['/cursor: must not hold U+0000 or a lone surrogate']],
    [
      'limit=x&foo=1&lent=maybe',
      ['/limit: must be an integer', ...unknown('foo'), '/lent: must be true or false'],
    ],
  ];
  for (const [query, expected] of table) {
    const reply = await ask(library, `GET /v1/books?${query}`);
    t.equal(reply.status, 400, query.slice(0, 80));
    t.same(problems(reply), expected, query.slice(0, 80));
  }
  t.same(library.calls, []);
});

t.test('a body that does not fit its binding is rejected', async (t) => {
  const library = await startLibrary(t);
  const table: [line: string, json: unknown, problems: string[]][] = [
    ['POST /v1/shelves/top/books', { shelf: 'top' }, ['/shelf: is given by the path']],
    ['PATCH /v1/books/b1', { id: 'b1' }, ['/id: is given by the path']],
    ['PATCH /v1/books/b1?book.title=x', {}, ['/book.title: belongs in the path or the body']],
    ['PATCH /v1/books/b1?book=x', {}, ['/book: belongs in the path or the body']],
    ['POST /v1/books/b1/lend?to=Ann', {}, ['/to: belongs in the body']],
    ['POST /v1/books/b1/lend?nothing=x', {}, ['/nothing: is not a known parameter']],
    ['PUT /v1/books/b1/tags', { tags: [] }, [': must be an array']],
    ['PUT /v1/books/b1/tags', ['x', 1], ['/1: must be a string']],
    ['GET /v1/books/b1', {}, [': must not have a body']],
    ['DELETE /v1/books/b1', '{}', [': must not have a body']],
    ['GET /v1/books/b1?id=b1', '', ['/id: belongs in the path or the body']],
  ];
  for (const [line, json, expected] of table) {
    const reply = await askJson(library, line, json);
    t.equal(reply.status, 400, line);
    t.same(problems(reply), expected, line);
  }
  const all = await askJson(library, 'POST /v1/shelves/a%00/books?x=1', { title: 1, y: 2 });
  t.same(problems(all), [
    '/title: must be a string',
    '/y: is not a known member',
    '/shelf: must not hold U+0000 or a lone surrogate',
    '/x: is not a known parameter',
  ]);
});
