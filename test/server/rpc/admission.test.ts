/** That nobody's body is looked at before its caller: on every surface, of every RPC. */
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { gzipSync } from 'node:zlib';
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { trailerParse } from '@connectrpc/connect/protocol-grpc-web';
import t from 'tap';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { ErrorDetailSchema } from '../../../gen/attestation/v1/errors_pb.js';
import { httpBindings } from '../../../src/server/http/rest/http-rule.js';
import { startApp } from '../../support/app.js';
import { enveloped } from '../../support/calling/raw-http.js';
import { CONCISE_PROBLEM, restError } from '../../support/calling/rest-error.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import { newKey } from '../../support/calling/test-keys.js';

const app = await startApp(t);
const owner = await newKey(app);
const unscoped = await newKey(app, { scopes: [] });
const methods = await keyedMethods();
const session = connect(app.baseUrl);
t.teardown(() => session.destroy());

const RPC_TYPES = [
  'application/json',
  'application/proto',
  'application/grpc',
  'application/grpc+json',
  'application/grpc-web+proto',
  'application/grpc-web+json',
];

type Sent = { method?: string; path: string; headers: Record<string, string>; body?: Buffer };

/** Sends headers, and the body or, without one, no end of it. @returns the code of the error, and its first place */
async function ask(on: ClientHttp2Session, { method = 'POST', path, headers, body }: Sent): Promise<string> {
  const stream = on.request({ ':method': method, ':path': path, ...headers }, { endStream: false });
  stream.on('error', () => {});
  if (body !== undefined) stream.end(body);
  let trailers: Record<string, string> = {};
  stream.once('trailers', (got) => {
    trailers = got as Record<string, string>;
  });
  const [leading] = (await once(stream, 'response')) as [Record<string, string>];
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(stream, 'end');
  stream.close();
  const type = leading['content-type'];
  if (type === CONCISE_PROBLEM) return restError(type, Buffer.concat(chunks)).code;
  return codeOf(headers['content-type'] ?? '', { ...leading, ...trailers }, Buffer.concat(chunks));
}

function codeOf(contentType: string, headers: Record<string, string>, body: Buffer): string {
  if (!contentType.startsWith('application/grpc')) {
    const { error, details } = JSON.parse(body.toString());
    return told(error ?? details?.[0].debug);
  }
  const text = Object.entries(headers).filter(([name]) => !name.startsWith(':'));
  const trailer = contentType.startsWith('application/grpc-web')
    ? trailerParse(body.subarray(5))
    : new Headers(text as [string, string][]);
  return told(findTrailerError(trailer)?.findDetails(ErrorDetailSchema)[0]);
}

function told(detail: { code: string; details?: JsonObject } | undefined): string {
  const [first] = (detail?.details?.errors ?? []) as { path: string }[];
  return first === undefined ? String(detail?.code) : `${detail?.code} at "${first.path}"`;
}

/** Every way to call a method that has a body. */
function waysTo(method: DescMethodUnary): Sent[] {
  const rpc = RPC_TYPES.map((type) => ({
    path: `/${method.parent.typeName}/${method.name}`,
    headers: { 'content-type': type },
  }));
  const rest = httpBindings(method)
    .filter(({ body }) => body !== '')
    .map(({ httpMethod, template }) => ({
      method: httpMethod,
      path: `/${template.segments.map((segment) => (segment.kind === 'literal' ? segment.text : 'x')).join('/')}`,
      headers: { 'content-type': 'application/json' },
    }));
  return [...rpc, ...rest];
}

for (const method of methods) {
  t.test(`${rpcName(method)} rejects who may not call before the body is there`, async (t) => {
    // A connection takes a few hundred requests at once without credentials.
    const session = connect(app.baseUrl);
    t.teardown(() => session.destroy());
    for (const way of waysTo(method)) {
      const name = `${way.method ?? ''} ${way.path} ${way.headers['content-type']}`;
      const packed = { 'content-encoding': 'gzip', 'grpc-encoding': 'gzip', 'content-length': '9999999' };
      const headers = { ...way.headers, ...packed };
      const as = (token: string) =>
        ask(session, { ...way, headers: { ...headers, authorization: `Bearer ${token}` } });
      t.equal(await ask(session, { ...way, headers }), 'auth.missing_credentials', name);
      t.equal(await as('svc_test_wrong'), 'auth.invalid_key', name);
      if (method.parent.name !== 'InfoService')
        t.equal(await as(unscoped.key), 'auth.insufficient_scope', name);
    }
  });
}

t.test('a message has no more values than its Structs can, in either form, compressed or not', async (t) => {
  const path = `/${AttestationService.typeName}/CreateAttestation`;
  const authorization = `Bearer ${owner.key}`;
  const json = (values: number) => Buffer.from(`{"metadata":{"a":[{}${',{}'.repeat(values - 1)}]}}`);
  const binary = (values: number) => {
    const list = Buffer.concat(Array<Buffer>(values).fill(Buffer.from([0x0a, 0x02, 0x2a, 0x00])));
    const value = field(6, list);
    return field(2, field(1, Buffer.concat([field(1, Buffer.from('a')), field(2, value)])));
  };
  for (const [type, make] of [
    ['application/json', json],
    ['application/proto', binary],
    ['application/grpc', binary],
    ['application/grpc+json', json],
    ['application/grpc-web+proto', binary],
  ] as const) {
    const isEnveloped = type.startsWith('application/grpc');
    for (const [values, code] of [
      [20_000, 'request.invalid at "/artifact"'],
      [40_000, 'request.invalid at ""'],
      [1_000_000, 'request.too_large'],
    ] as const) {
      const packed = gzipSync(make(values));
      const encoding = isEnveloped ? 'grpc-encoding' : 'content-encoding';
      const headers = { 'content-type': type, authorization, [encoding]: 'gzip' };
      const body = isEnveloped ? enveloped(1, packed) : packed;
      t.equal(await ask(session, { path, headers, body }), code, `${type}, ${values} values`);
    }
  }
});

/** A length-delimited field. */
function field(number: number, bytes: Buffer): Buffer {
  const length: number[] = [];
  for (let left = bytes.length; ; left >>>= 7) {
    if (left < 0x80) {
      length.push(left);
      break;
    }
    length.push((left & 0x7f) | 0x80);
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes]);
}
