import t from 'tap';
import { compilePathReader } from '../../../../src/server/http/rest/field-path.js';
import { parseTemplate } from '../../../../src/server/http/rest/http-rule.js';
import { createRouter, type Router } from '../../../../src/server/http/rest/router.js';
import { startReading } from '../../../../src/server/json/problems.js';
import { EverythingSchema } from '../../../gen/library/v1/library_pb.js';

/** A router whose targets are `METHOD template`. */
function routerOf(...routes: string[]): Router<string> {
  const router = createRouter<string>();
  for (const route of routes) {
    const [method = '', source = ''] = route.split(' ');
    router.add(method, parseTemplate(source), route);
  }
  return router;
}

t.test('a path leads to the most specific template that has the method', async (t) => {
  const router = routerOf(
    'GET /v1/books',
    'POST /v1/books',
    'GET /v1/books:search',
    'POST /v1/books:import',
    'GET /v1/books/{id}',
    'DELETE /v1/books/{id}',
    'POST /v1/books/{id}:lend',
    'GET /v1/books/new',
    'GET /v1/books/{id}/{format=book.json}',
    'GET /v1/books/{id}/{part}',
    'PATCH /v1/books/new/cover',
    'GET /v1/files/{path=**}',
    'POST /v1/files/{path=**}:seal',
    'GET /v1/files/index',
    'PURGE /v1/books/{id}',
    '* /v1/any/{id}',
    'GET /v1/any/{id}',
    'GET /v1/a%2Fb',
    'GET /v1/a:b%3Ac',
    'OPTIONS /v1/own',
    'GET /v1/own',
    'GET /v1/{a}/x/{b}',
    'GET /v1/left/{a}/right',
  );
  const table: [request: string, template: string | undefined][] = [
    ['GET /v1/books', '/v1/books'],
    ['HEAD /v1/books', '/v1/books'],
    ['GET /v1/books/', undefined],
    ['GET /v1/books//', undefined],
    ['GET //v1/books', undefined],
    ['GET /v1//books', undefined],
    ['GET /V1/books', undefined],
    ['GET /', undefined],
    ['GET ', undefined],
    ['GET v1/books', undefined],
    ['GET *', undefined],
    ['GET /v1', undefined],
    ['GET /v1/books/b1', '/v1/books/{id}'],
    ['GET /v1/books/new', '/v1/books/new'],
    ['GET /v1/books/n%65w', '/v1/books/new'],
    ['GET /%76%31/b%6Foks', '/v1/books'],
    ['DELETE /v1/books/new', '/v1/books/{id}'],
    ['GET /v1/books/new/cover', '/v1/books/{id}/{part}'],
    ['PATCH /v1/books/new/cover', '/v1/books/new/cover'],
    ['PATCH /v1/books/old/cover', undefined],
    ['GET /v1/books/..', '/v1/books/{id}'],
    ['GET /v1/books/%2e%2e', '/v1/books/{id}'],
    ['GET /v1/books/%', '/v1/books/{id}'],
    ['GET /v1/book%', undefined],
    ['GET /v1/books%2Fb1', undefined],
    ['GET /v1%2Fbooks', undefined],
    ['GET /v1/books/a%2Fb', '/v1/books/{id}'],
    ['GET /v1/a%2fb', '/v1/a%2Fb'],
    ['GET /v1/a/b', undefined],
    ['GET /v1/books:search', '/v1/books:search'],
    ['GET /v1/books:sear%63h', '/v1/books:search'],
    ['GET /v1/books%3Asearch', undefined],
    ['POST /v1/books:search', undefined],
    ['GET /v1/books:', undefined],
    ['POST /v1/books/b1:lend', '/v1/books/{id}:lend'],
    ['POST /v1/books/b:1:lend', '/v1/books/{id}:lend'],
    ['POST /v1/books/b1%3Alend', undefined],
    ['POST /v1/books/:lend', undefined],
    ['POST /v1/books/b1:lend:', undefined],
    ['POST /v1/books/b1:LEND', undefined],
    ['GET /v1/books/b1:lend', '/v1/books/{id}'],
    ['GET /v1/books/urn:isbn:5', '/v1/books/{id}'],
    ['GET /v1/books/b1:', '/v1/books/{id}'],
    ['GET /v1/books/:', '/v1/books/{id}'],
    ['PURGE /v1/books/b1', '/v1/books/{id}'],
    ['GET /v1/books/b1/book.json', '/v1/books/{id}/{format=book.json}'],
    ['GET /v1/books/b1/book%2Ejson', '/v1/books/{id}/{format=book.json}'],
    ['GET /v1/books/b1/book.txt', '/v1/books/{id}/{part}'],
    ['GET /v1/books/b1/book.json/', undefined],
    ['GET /v1/files', '/v1/files/{path=**}'],
    ['GET /v1/files/', '/v1/files/{path=**}'],
    ['GET /v1/files/a//b/', '/v1/files/{path=**}'],
    ['GET /v1/files/index', '/v1/files/index'],
    ['GET /v1/files/index/more', '/v1/files/{path=**}'],
    ['POST /v1/files/a/b:seal', '/v1/files/{path=**}:seal'],
    ['POST /v1/files:seal', '/v1/files/{path=**}:seal'],
    ['GET /v1/files/a/b:seal', '/v1/files/{path=**}'],
    ['POST /v1/files/a:seal/b', undefined],
    ['GET /v1/any/x', '/v1/any/{id}'],
    ['REPORT /v1/any/x', '/v1/any/{id}'],
    ['OPTIONS /v1/any/x', undefined],
    ['OPTIONS /v1/own', '/v1/own'],
    ['GET /v1/a:b:c', undefined],
    ['GET /v1/left/x/right', '/v1/left/{a}/right'],
    ['GET /v1/left/x/wrong', '/v1/{a}/x/{b}'],
  ];
  for (const [request, template] of table) {
    const [method = '', path = ''] = request.split(' ');
    t.equal(router.find(method, path)?.target.split(' ')[1], template, request);
  }
});

t.test('the methods of a path are those of every template that matches it', async (t) => {
  const router = routerOf(
    'POST /v1/books',
    'GET /v1/books/{id}',
    'POST /v1/books/{id}:lend',
    'PATCH /v1/books/new',
    'LOCK /v1/books/{id}',
    '* /v1/any',
    'PUT /v1/files/**',
  );
  t.same(router.allowedMethods('/v1/books'), ['POST', 'OPTIONS']);
  t.same(router.allowedMethods('/v1/books/new'), ['GET', 'HEAD', 'PATCH', 'LOCK', 'OPTIONS']);
  t.same(router.allowedMethods('/v1/books/b1:lend'), ['GET', 'HEAD', 'POST', 'LOCK', 'OPTIONS']);
  t.same(router.allowedMethods('/v1/any'), ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
  t.same(router.allowedMethods('/v1/files/a/b'), ['PUT', 'OPTIONS']);
  t.same(router.allowedMethods('/v1/nothing'), []);
});

t.test('templates that match the same paths with the same method are rejected, naming both', async (t) => {
  const clash = (a: string, b: string) => t.throws(() => routerOf(a, b), /both match/, `${a} and ${b}`);
  t.throws(
    () => routerOf('GET /v1/books/{id}', 'GET /v1/books/{isbn=*}'),
    /"\/v1\/books\/\{id\}" and "\/v1\/books\/\{isbn=\*\}" both match GET \/v1\/books\/\*/,
  );
  clash('GET /v1/{name=books/*}', 'GET /v1/books/{id}');
  clash('POST /v1/{a=**}:x', 'POST /v1/**:x');
  clash('GET /v1/b%6Foks', 'GET /v1/books');
  clash('* /v1/books', '* /v1/books');
  t.doesNotThrow(() =>
    routerOf('GET /v1/{a}', 'POST /v1/{b}', 'GET /v1/{c}:d', 'GET /v1/{e=**}', '* /v1/{f}'),
  );
});

t.test(
  'variables are decoded once; in those of several segments an encoded slash stays encoded',
  async (t) => {
    const variable = (source: string, path: string) => {
      const router = createRouter<string>();
      const template = parseTemplate(source);
      router.add('GET', template, source);
      const segments = router.find('GET', path)?.segments;
      if (segments === undefined) return 'no match';
      const message: Record<string, unknown> = {};
      const reading = startReading();
      compilePathReader(EverythingSchema, template)(segments, message, reading, undefined);
      return reading.problems[0]?.message ?? message.stringField;
    };
    const table: [template: string, path: string, value: string][] = [
      ['/{string_field}', '/a%2Fb', 'a/b'],
      ['/{string_field}', '/a%2520b', 'a%20b'],
      ['/{string_field}', '/a+b', 'a+b'],
      ['/{string_field}', '/%E2%82%AC', '€'],
      ['/{string_field}', '/a%3Fb%23c', 'a?b#c'],
      ['/{string_field}', '/%', 'is not percent-encoded UTF-8'],
      ['/{string_field}', '/%E2%82', 'is not percent-encoded UTF-8'],
      ['/{string_field}', '/%C0%AF', 'is not percent-encoded UTF-8'],
      ['/{string_field}', '/%ED%A0%80', 'is not percent-encoded UTF-8'],
      ['/{string_field}', '/a%00', 'must not hold U+0000 or a lone surrogate'],
      ['/{string_field}:go', '/a:go', 'a'],
      ['/{string_field}:go', '/a%3Ago:go', 'a:go'],
      ['/x/{string_field=y}/z', '/x/%79/z', 'y'],
      ['/{string_field=a/*}', '/a/b%2Fc%20d', 'a/b%2Fc d'],
      ['/{string_field=a/*}', '/%61/b', 'a/b'],
      ['/f/{string_field=**}', '/f', ''],
      ['/f/{string_field=**}', '/f/', ''],
      ['/f/{string_field=**}', '/f/a/b%2fc//%64', 'a/b%2fc//d'],
      ['/f/{string_field=**}', '/f/a/%C3%2F', 'is not percent-encoded UTF-8'],
      ['/f/{string_field=**}:go', '/f/a/b:go', 'a/b'],
      ['/{string_field=*/x/**}', '/a/x', 'a/x'],
      ['/{string_field=*/x/**}', '/a/x/b/c', 'a/x/b/c'],
    ];
    for (const [source, path, value] of table) t.equal(variable(source, path), value, `${source} ${path}`);
  },
);
