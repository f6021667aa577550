/** A `google.protobuf.Value` without a kind, which decoders take for null: only binary messages can have one. */
import { connect } from 'node:http2';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type JsonObject,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import t, { type Test } from 'tap';
import {
  AttestationService,
  BatchCreateAttestationsRequestSchema,
  BatchCreateAttestationsResponseSchema,
  CreateAttestationRequestSchema,
  ItemOutcome,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ApiError } from '../../../../src/server/core/errors.js';
import { compileValueCheck } from '../../../../src/server/json/check-values.js';
import { EverythingSchema } from '../../../gen/library/v1/library_pb.js';
import { startApp } from '../../../support/app.js';
import { enveloped } from '../../../support/calling/raw-http.js';
import { publicMethods, rpcName } from '../../../support/calling/rpcs.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { creation } from '../samples.js';
import { openSender } from './hostile-calls.js';

const app = await startApp(t);
const owner = await newKey(app);
const send = openSender(t, app);
const { createAttestation, batchCreateAttestations } = AttestationService.method;

const inField = (number: number, bytes: Uint8Array) =>
  new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish();
const text = (number: number, value: string) => inField(number, Buffer.from(value));
const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
const NOTHING = new Uint8Array();
/** A Struct with one member. */
const struct = (name: string, value: Uint8Array) => inField(1, join(text(1, name), inField(2, value)));
const structValue = (name: string, value: Uint8Array) => inField(5, struct(name, value));
const listValue = (...values: Uint8Array[]) => inField(6, join(...values.map((value) => inField(1, value))));
const NULL = new BinaryWriter().tag(1, WireType.Varint).int32(0).finish();

/** Values that hold one without a kind, and where. */
const HOSTILE: readonly [value: Uint8Array, pointer: string][] = [
  [NOTHING, ''],
  [text(1_000, 'an unknown field'), ''],
  [structValue('b', NOTHING), '/b'],
  [listValue(NULL, NOTHING), '/1'],
  [listValue(NULL, structValue('a/b', listValue(NOTHING))), '/1/a~1b/0'],
  [inField(5, inField(1, text(1, 'an entry without its value'))), '/an entry without its value'],
  [inField(5, inField(1, join(inField(2, NOTHING), text(1, 'last')))), '/last'],
];

/** A creation with one more member of its metadata. */
function creationWith(value: Uint8Array): Uint8Array {
  const good = toBinary(
    CreateAttestationRequestSchema,
    create(CreateAttestationRequestSchema, creation('ab'.repeat(32))),
  );
  // Both of a message's parts count (merging), as encoders may write it.
  return join(good, inField(2, struct('x', value)));
}

type Answer = { code: string; message: string };

/** The binary surfaces besides gRPC, which `send` speaks. */
async function byHttp(path: string, type: string, body: Uint8Array): Promise<string> {
  const session = connect(app.baseUrl);
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': type,
    authorization: `Bearer ${owner.key}`,
  });
  stream.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  session.close();
  return Buffer.concat(chunks).toString();
}

t.test('it is rejected by its place on every binary surface, at every depth', async (t) => {
  const path = '/attestation.v1.AttestationService/CreateAttestation';
  for (const [value, pointer] of HOSTILE) {
    const message = creationWith(value);
    const what = `/metadata/x${pointer}`;
    t.equal(await send(createAttestation, message, owner.key), 'request.invalid', `gRPC ${what}`);
    const connectAnswer = JSON.parse(await byHttp(path, 'application/proto', message)) as Answer;
    t.match(connectAnswer, { code: 'invalid_argument' });
    t.ok(connectAnswer.message.startsWith(`${what} is a google.protobuf.Value without a kind`), what);
    const web = await byHttp(path, 'application/grpc-web+proto', enveloped(0, Buffer.from(message)));
    t.match(web, /grpc-status: ?3\r\n/, `gRPC-Web ${what}`);
    const { status, json } = await app.rest(path, {
      apiKey: owner.key,
      headers: { 'content-type': 'application/proto' },
      body: message,
    });
    t.match([status, json], [400, { code: 'invalid_argument' }]);
  }
  t.same(await app.pool`SELECT id FROM submission`, []);
});

t.test('null with its kind is null', async (t) => {
  t.equal(await send(createAttestation, creationWith(listValue(NULL)), owner.key), 'ok');
  const [row] = await app.pool<{ metadata: string }[]>`SELECT metadata FROM submission`;
  t.match(JSON.parse(row?.metadata ?? ''), { x: [null] });
  await app.pool`SELECT 1`;
});

t.test('of a batch it is the item that is rejected', async (t) => {
  const good = creationWith(NULL);
  const items = [good, creationWith(structValue('b', NOTHING)), good].map((item) => inField(1, item));
  const path = `/attestation.v1.AttestationService/${batchCreateAttestations.name}`;
  const session = connect(app.baseUrl);
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/proto',
    authorization: `Bearer ${owner.key}`,
  });
  stream.end(join(...items));
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  session.close();
  const { results } = fromBinary(BatchCreateAttestationsResponseSchema, Buffer.concat(chunks));
  const { CREATED, FAILED } = ItemOutcome;
  t.same(
    results.map(({ outcome }) => outcome),
    [CREATED, FAILED, CREATED],
  );
  t.match(results[1]?.error, { code: 'request.invalid', message: /^\/metadata\/x\/b / });
  t.equal(BatchCreateAttestationsRequestSchema.fields.length, 1);
});

/** The messages that lead to each Struct of a message: a message's bytes are made of those of its Struct. */
function structsOf(desc: DescMessage): ((value: Uint8Array) => Uint8Array)[] {
  return desc.fields.flatMap(({ message, number, fieldKind }) => {
    if (message === undefined || fieldKind === 'map') return [];
    if (message.typeName === 'google.protobuf.Struct') return [(value: Uint8Array) => inField(number, value)];
    if (message.typeName.startsWith('google.')) return [];
    return structsOf(message).map((make) => (value: Uint8Array) => inField(number, make(value)));
  });
}

t.test('every RPC with a Struct in its request rejects it', async (t) => {
  const found: string[] = [];
  for (const method of (await publicMethods()) as DescMethodUnary[]) {
    for (const make of structsOf(method.input)) {
      found.push(rpcName(method));
      if (method.name.startsWith('Batch')) continue;
      t.equal(await send(method, make(struct('x', NOTHING)), owner.key), 'request.invalid', rpcName(method));
    }
  }
  t.ok(found.length >= 3, found.join());
});

/** What the check says of bytes: a problem's path, or undefined. */
function placeIn(bytes: Uint8Array, max = 100): string | undefined {
  try {
    compileValueCheck(EverythingSchema)?.(bytes, max);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const [first] = error.details.errors as { path: string }[];
    return first?.path;
  }
}

t.test('the check finds it in any kind of field', (t: Test) => {
  const hostile = struct('x', NOTHING);
  const numberOf = (name: string) =>
    EverythingSchema.fields.find((field) => field.name === name)?.number ?? 0;
  const entry = (value: Uint8Array) => join(text(1, 'k'), inField(2, value));
  const cases: [string, Uint8Array, string][] = [
    ['struct', hostile, '/struct/x'],
    ['struct_list', hostile, '/struct_list/0/x'],
    ['struct_map', entry(hostile), '/struct_map/k/x'],
    ['struct_choice', hostile, '/struct_choice/x'],
    ['value', NOTHING, '/value'],
    ['list_value', inField(1, NOTHING), '/list_value/0'],
  ];
  for (const [name, bytes, place] of cases) {
    const number = numberOf(name);
    t.equal(placeIn(inField(number, bytes)), place);
    const inner = inField(numberOf('message_list'), inField(number, bytes));
    t.equal(placeIn(join(inField(numberOf('message_list'), NOTHING), inner)), `/message_list/1${place}`);
  }
  const fine: JsonObject = { a: null, b: [1, 'x', true, { c: [] }, {}], '': '' };
  const message = create(EverythingSchema, { struct: fine, structList: [fine], structMap: { k: fine } });
  t.equal(placeIn(toBinary(EverythingSchema, message)), undefined);
  t.equal(placeIn(toBinary(EverythingSchema, message), 3), '', 'more values than there may be');
  t.equal(placeIn(Buffer.from('ff', 'hex')), undefined, "malformed bytes are the decoder's");
  t.end();
});
