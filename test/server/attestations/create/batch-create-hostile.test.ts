/** Bodies of batches that are malformed, truncated, too large, or hold items of other shapes. */
import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { creation } from '../../rpc/samples.js';

const { batchCreateAttestations } = AttestationService.method;
const app = await startApp(t);
const owner = await newKey(app);

t.test('hostile bodies of REST are rejected whole, and nothing of them is stored', async (t) => {
  const item = JSON.stringify(creation('1'.repeat(64)));
  const before = await countRows();
  const send = async (body: string | Uint8Array, headers = {}) =>
    app.rest('/v1/attestations:batch', { apiKey: owner.key, body, headers });
  const malformed = [
    '{',
    '{"items"',
    '{"items":',
    '{"items":[',
    `{"items":[${item}`,
    `{"items":[${item},`,
    `{"items":[${item},]}`,
    `{"items":[,${item}]}`,
    `{"items":[${item},,${item}]}`,
    `{"items":[${item}]`,
    `{"items":[${item}]}}`,
    `{"items":[${item}]} x`,
    `{"items":[${item},{"artifact":}]}`,
    `{"items":[${item},{]}`,
    `{"items":[${item},"open]}`,
    `{items:[${item}]}`,
    `{"items":[${item} ${item}]}`,
    `\u00ef\u00bb\u00bf{"items":[${item}]}`,
    `{"items":[${item},${'['.repeat(100)}${']'.repeat(100)}]}`,
  ];
  for (const body of [
    ...malformed,
    Buffer.from([...Buffer.from('{"items":["'), 0xff, ...Buffer.from('"]}')]),
  ]) {
    const { status, json } = await send(body);
    t.match(
      { status, json },
      { status: 400, json: { error: { code: 'request.malformed_json' } } },
      String(body),
    );
  }
  const invalid: [body: string, path: string][] = [
    ['', '/items'],
    ['{}', '/items'],
    ['[]', ''],
    ['"x"', ''],
    ['{"items":[]}', '/items'],
    ['{"items":{}}', '/items'],
    ['{"items":null}', '/items'],
    [`{"items":[${item}],"items":[]}`, '/items'],
    [`{"items":[${item}],"more":1}`, '/more'],
    [`{"more":1,"items":[${item}]}`, '/more'],
    [`{"items":[${`${item},`.repeat(1_000)}${item}]}`, '/items'],
  ];
  for (const [body, path] of invalid) {
    const { status, json } = await send(body);
    t.match({ status, json }, { status: 400, json: { error: { code: 'request.invalid' } } }, body);
    t.match((json.error as JsonObject).details, { errors: [{ path }] }, body.slice(0, 60));
  }
  const large = await send(`{"items":[${' '.repeat(3 * 1024 * 1024 + 8_192)}]}`);
  t.match(large, { status: 413, json: { error: { code: 'request.too_large' } } });
  t.equal((await send(`{"items":[${item}]}`, { 'content-type': 'text/plain' })).status, 415);
  t.equal(await countRows(), before);
});

t.test('truncated bodies of Connect and gRPC-Web are rejected whole, or are shorter batches', async (t) => {
  const batch = (digests: readonly string[]) => ({ items: digests.map((sha256) => creation(sha256)) });
  const { input } = batchCreateAttestations;
  const bytes = toBinary(input, create(input, batch(['4'.repeat(64), '5'.repeat(64)]) as never));
  const [firstItem] = [toBinary(input, create(input, batch(['4'.repeat(64)]) as never)).length];
  const text = Buffer.from(JSON.stringify(batch(['6'.repeat(64), '7'.repeat(64)])));
  const before = await countRows();
  for (let length = 1; length < bytes.length; length += 3) {
    const cut = bytes.subarray(0, length);
    if (length === firstItem) continue;
    const { status, code } = await sendRaw('application/proto', cut);
    t.same({ status, code }, { status: 400, code: 'invalid_argument' }, `${length} bytes of a message`);
    t.equal((await sendRaw('application/grpc-web+proto', framed(cut))).grpcStatus, Code.InvalidArgument);
    t.equal(
      (await sendRaw('application/grpc-web+proto', framed(bytes).subarray(0, length + 4))).grpcStatus,
      Code.InvalidArgument,
    );
  }
  for (let length = 1; length < text.length; length += 7) {
    const { status, code } = await sendRaw('application/json', text.subarray(0, length));
    t.same({ status, code }, { status: 400, code: 'invalid_argument' }, `${length} bytes of JSON`);
  }
  const large = Buffer.alloc(3 * 1024 * 1024 + 8_192, ' ');
  for (const type of ['application/proto', 'application/json']) {
    t.equal((await sendRaw(type, large)).code, 'resource_exhausted', type);
  }
  t.equal((await sendRaw('application/grpc-web+proto', framed(large))).grpcStatus, Code.ResourceExhausted);
  t.equal(await countRows(), before);
  t.equal((await sendRaw('application/proto', bytes.subarray(0, firstItem))).status, 200);
  t.equal(await countRows(), before + 1);
});

t.test('items of other shapes fail by themselves on REST', async (t) => {
  const item = creation('2'.repeat(64));
  const shapes = [
    7,
    null,
    'x',
    [],
    {},
    { ...item, more: 1 },
    { ...item, metadata: [] },
    { ...item, artifact: 'x' },
  ];
  const twice = `{"artifact":{"sha256":"${'3'.repeat(64)}","sha256":"x"},"metadata":{"schema":"purl"}}`;
  const inexact = `{"artifact":{"sha256":"${'3'.repeat(64)}"},"metadata":{"schema":"purl","n":9007199254740993}}`;
  const texts = [...shapes.map((shape) => JSON.stringify(shape)), twice, inexact, JSON.stringify(item)];
  const { status, json } = await app.rest('/v1/attestations:batch', {
    apiKey: owner.key,
    body: ` { "items" : [ ${texts.join(' , ')} ] } `,
  });
  t.equal(status, 200);
  const results = json.results as { outcome: string; error?: { code: string; details: JsonObject } }[];
  t.same(
    results.map(({ error }) => error?.code),
    [...texts.slice(1).map(() => 'request.invalid'), undefined],
  );
  const pathOf = (i: number) =>
    (results[i]?.error?.details.errors as { path: string }[] | undefined)?.[0]?.path;
  t.same([0, 5, 6, 7, 8, 9].map(pathOf), [
    '',
    '/more',
    '/metadata',
    '/artifact',
    '/artifact/sha256',
    '/metadata/n',
  ]);
});

/** Sends a body as it is, by the RPC's path. */
async function sendRaw(type: string, body: Uint8Array) {
  const url = `${app.baseUrl}/${AttestationService.typeName}/${batchCreateAttestations.name}`;
  const headers = { authorization: `Bearer ${owner.key}`, 'content-type': type };
  const response = await fetch(url, { method: 'POST', headers, body: Buffer.from(body) });
  const answer = await response.text();
  const grpcStatus = Number(response.headers.get('grpc-status') ?? /grpc-status: ?(\d+)/i.exec(answer)?.[1]);
  const { code } = (answer.startsWith('{') ? JSON.parse(answer) : {}) as { code?: string };
  return { status: response.status, code, grpcStatus };
}

/** A message in a frame of gRPC: no compression, its length, its bytes. */
function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function countRows(): Promise<number> {
  const [row] = await app.pool<{ n: number }[]>`SELECT count(*)::integer AS n FROM submission`;
  return row?.n ?? 0;
}
