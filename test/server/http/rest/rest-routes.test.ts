/** Which RPC a path leads to, and what its variables are. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { compilePathReader } from '../../../../src/server/http/rest/field-path.js';
import { parseTemplate } from '../../../../src/server/http/rest/http-rule.js';
import { startReading } from '../../../../src/server/json/problems.js';
import { EverythingSchema } from '../../../gen/library/v1/library_pb.js';
import { ask, codeOf, startLibrary } from './rest-library.js';

t.test('a path leads to the most specific template that has the method', async (t) => {
  const library = await startLibrary(t);
  const table: [request: string, rpc: string][] = [
    ['GET /v1/books', 'ListBooks'],
    ['HEAD /v1/books', 'ListBooks'],
    ['GET /v1/books?limit=1', 'ListBooks'],
    ['GET /%76%31/b%6Foks', 'ListBooks'],
    ['POST /v1/books:search', 'ListBooks'],
    ['POST /v1/books:sear%63h', 'ListBooks'],
    ['GET /v1/books/b1', 'GetBook'],
    ['GET /v1/books/..', 'GetBook'],
    ['GET /v1/books/%2e%2e', 'GetBook'],
    ['GET /v1/books/a%2Fb', 'GetBook'],
    ['GET /v1/books/urn:isbn:5', 'GetBook'],
    ['GET /v1/books/:', 'GetBook'],
    [`GET /v1/books/${'x'.repeat(4_000)}`, 'GetBook'],
    ['GET /v1/shelves/s/books/b1', 'GetBook'],
    ['DELETE /v1/books/b1', 'DeleteBook'],
    ['PURGE /v1/books/b1', 'PurgeBook'],
    ['GET /v1/books/b1/book.json', 'DownloadBook'],
    ['GET /v1/books/b1/book%2Ejson', 'DownloadBook'],
    ['GET /v1/files/', 'ReadFile'],
    ['GET /v1/files/a//b/', 'ReadFile'],
  ];
  for (const [request, rpc] of table) {
    library.calls.length = 0;
    t.equal((await ask(library, request)).status < 300, true, request);
    t.equal(library.calls[0]?.call.method.name, rpc, request);
  }
});

t.test('other paths and methods lead nowhere', async (t) => {
  const library = await startLibrary(t);
  const table: [request: string, status: number][] = [
    ['GET /v1/books/', 404],
    ['GET /v1/books//', 404],
    ['GET //v1/books', 404],
    ['GET /v1//books', 404],
    ['GET /V1/books', 404],
    ['GET /v1', 404],
    ['GET /v1/files', 404],
    ['GET /v1/books%2Fb1', 404],
    ['GET /v1%2Fbooks', 404],
    ['GET /v1/books:', 404],
    ['POST /v1/books%3Asearch', 404],
    ['POST /v1/books:SEARCH', 404],
    ['GET /v1/books/b1/book.xml', 404],
    ['GET /v1/books/b1/book.json/', 404],
    ['GET /v1/books:search', 405],
    ['POST /v1/books/b1', 405],
    ['REPORT /v1/books/b1', 405],
    ['MKCOL /v1/files/a/b', 405],
    ['GET /v1/book%', 400],
    ['GET /v1/books/%', 400],
    ['GET /v1/books/%C0%AF', 400],
    ['POST /v1/nothing/%ED%A0%80', 400],
  ];
  for (const [request, status] of table) {
    const reply = await ask(library, request);
    t.equal(reply.status, status, request);
    if (status === 400) t.equal(codeOf(reply), 'request.invalid');
  }
  t.same(library.calls, []);
});

t.test(
  'variables are decoded once; in those of several segments an encoded slash stays encoded',
  async (t) => {
    const variable = (source: string, path: string) => {
      const message: JsonObject = {};
      const reading = startReading();
      const read = compilePathReader(EverythingSchema, parseTemplate(source));
      read(path.slice(1).split('/'), message, reading, undefined);
      return reading.problems[0]?.message ?? message.stringField;
    };
    const table: [template: string, path: string, value: string][] = [
      ['/{string_field}', '/a%2Fb', 'a/b'],
      ['/{string_field}', '/a%2520b', 'a%20b'],
      ['/{string_field}', '/a+b', 'a+b'],
      ['/{string_field}', '/%E2%82%AC', '€'],
      ['/{string_field}', '/a%3Fb%23c', 'a?b#c'],
      ['/{string_field}', '/a%00', 'must not hold U+0000 or a lone surrogate'],
      ['/x/{string_field=y}/z', '/x/%79/z', 'y'],
      ['/{string_field=a/*}', '/a/b%2Fc%20d', 'a/b%2Fc d'],
      ['/{string_field=a/*}', '/%61/b', 'a/b'],
      ['/f/{string_field=**}', '/f', ''],
      ['/f/{string_field=**}', '/f/', ''],
      ['/f/{string_field=**}', '/f/a/b%2fc//%64', 'a/b%2fc//d'],
      ['/{string_field=*/x/**}', '/a/x', 'a/x'],
      ['/{string_field=*/x/**}', '/a/x/b/c', 'a/x/b/c'],
    ];
    for (const [source, path, value] of table) t.equal(variable(source, path), value, `${source} ${path}`);
  },
);
