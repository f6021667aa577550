import { randomBytes } from 'node:crypto';
import { create, type DescMessage, type DescMethodUnary, getOption, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { credentials, Metadata, makeGenericClientConstructor, type ServiceError } from '@grpc/grpc-js';
import t from 'tap';
import { error as errorOption } from '../../gen/attestation/options/v1/options_pb.js';
import {
  AttestationService,
  CreateAttestationRequestSchema,
} from '../../gen/attestation/v1/attestations_pb.js';
import { ErrorCodeSchema, ErrorDetailSchema } from '../../gen/attestation/v1/errors_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import { startApp } from '../support/app.js';
import { assertNoLeaks } from '../support/recorder.js';
import { publicMethods, rpcName } from '../support/rpcs.js';
import { newKey } from '../support/test-keys.js';
import { hostileBodies, objectAt } from './hostile-requests.js';
import { creation } from './samples.js';

const app = await startApp(t);
const owner = await newKey(app);
const surfaces = app.surfaces();
const methods = await publicMethods();
const MIB = 1024 * 1024;

/** The gRPC code of every dotted code. */
const GRPC_CODES = new Map(
  ErrorCodeSchema.values
    .filter(({ number }) => number !== 0)
    .map((value) => getOption(value, errorOption))
    .map(({ code, grpcCode }) => [code, grpcCode]),
);

const GenericClient = makeGenericClientConstructor({}, 'generic');
const client = new GenericClient(new URL(app.baseUrl).host, credentials.createInsecure(), {
  'grpc.max_send_message_length': -1,
});
t.teardown(() => client.close());

/** Sends bytes as the message of a call. @returns `ok`, the dotted code, or what is wrong with the error */
function send(method: DescMethodUnary, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${owner.key}`);
    const path = `/${method.parent.typeName}/${method.name}`;
    const raw = (buffer: Buffer) => buffer;
    client.makeUnaryRequest(
      path,
      raw,
      raw,
      Buffer.from(bytes),
      metadata,
      {},
      (error: ServiceError | null) => {
        app.recorder.answered(error?.details ?? '', error !== null);
        resolve(error === null ? 'ok' : codeOf(error));
      },
    );
  });
}

function codeOf({ code, details, metadata }: ServiceError): string {
  const [status = ''] = metadata.get('grpc-status-details-bin');
  const headers = new Headers({
    'grpc-status': String(code),
    'grpc-status-details-bin': Buffer.from(status as Buffer).toString('base64'),
  });
  const [detail] = findTrailerError(headers)?.findDetails(ErrorDetailSchema) ?? [];
  if (detail === undefined) return `gRPC ${code} without detail: ${details}`;
  if (GRPC_CODES.get(detail.code) !== code) return `${detail.code} with gRPC code ${code}`;
  return detail.requestId === '' ? 'no request id' : detail.code;
}

/** Bytes that are no message, or an unlikely one. */
function hostileMessages(desc: DescMessage): Uint8Array[] {
  const numbers = [...desc.fields.map(({ number }) => number), 1_000, 19_000];
  return [
    ...Array.from({ length: 100 }, (_, i) => randomBytes(i)),
    Buffer.alloc(1_000, 0xff),
    Buffer.alloc(1_000, 0x0a),
    Buffer.from([0]),
    Buffer.from([0x07]),
    ...numbers.flatMap((number) => [
      ...[0n, 1n, -1n, 2n ** 63n - 1n].map((n) =>
        new BinaryWriter().tag(number, WireType.Varint).int64(n).finish(),
      ),
      new BinaryWriter().tag(number, WireType.Bit32).fixed32(7).finish(),
      new BinaryWriter().tag(number, WireType.Bit64).fixed64(7n).finish(),
      new BinaryWriter().tag(number, WireType.StartGroup).finish(),
      new BinaryWriter().tag(number, WireType.EndGroup).finish(),
      new BinaryWriter()
        .tag(number, WireType.LengthDelimited)
        .uint32(2 ** 31)
        .finish(),
      ...[[], [0], [0xff, 0xfe], [0xed, 0xa0, 0x80], [0x0a, 0x05, 1], Array<number>(70_000).fill(0x61)].map(
        (bytes) =>
          new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(Buffer.from(bytes)).finish(),
      ),
      nested(number, 50),
      nested(number, 5_000),
    ]),
  ];
}

/** The field within itself, over and over. */
function nested(number: number, levels: number): Uint8Array {
  let bytes: Uint8Array = new Uint8Array();
  for (let level = 0; level < levels; level++) {
    bytes = new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(bytes).finish();
  }
  return bytes;
}

async function assertAlive(t: Tap): Promise<void> {
  for (const { name, call } of surfaces) {
    t.equal((await call(InfoService.method.getHealth, {}, owner.key)).code, 'ok', `${name} is served`);
  }
}
type Tap = Pick<typeof t, 'equal'>;

for (const method of methods) {
  t.test(`${rpcName(method)} answers whatever gRPC brings with a documented error or success`, async (t) => {
    const messages = hostileMessages(method.input);
    const codes = await Promise.all(messages.map((bytes) => send(method, bytes)));
    const wrong = codes.filter(
      (code) => code !== 'ok' && (!GRPC_CODES.has(code) || code.startsWith('service.')),
    );
    t.same([...new Set(wrong)], []);
    await assertAlive(t);
  });

  t.test(
    `${rpcName(method)} answers whatever Connect brings with a documented error or success`,
    async (t) => {
      const wrong: string[] = [];
      for (const body of hostileBodies(method.input)) {
        const answer = await app.rest(`/${method.parent.typeName}/${method.name}`, {
          apiKey: owner.key,
          body,
        });
        if (answer.status < 300) continue;
        const [detail = {}] = (answer.json.details ?? []) as { debug?: { code: string } }[];
        const code = detail.debug?.code ?? String(objectAt(answer.json, 'error').code);
        if (answer.status >= 500 || !GRPC_CODES.has(code)) wrong.push(`${body.slice(0, 60)}: ${answer.body}`);
      }
      t.same(wrong.slice(0, 20), []);
      await assertAlive(t);
    },
  );
}

t.test('a message of more than 1 MiB is refused on gRPC and Connect', async (t) => {
  const { createAttestation } = AttestationService.method;
  const padded = (bytes: number) =>
    toBinary(
      CreateAttestationRequestSchema,
      create(
        CreateAttestationRequestSchema,
        creation('ab'.repeat(32), { schema: 'purl', fill: 'x'.repeat(bytes) }),
      ),
    );
  t.equal(await send(createAttestation, padded(MIB - 1_024)), 'request.invalid', 'its metadata is too large');
  t.equal(await send(createAttestation, padded(MIB + 1_024)), 'request.too_large');
  for (const method of methods) {
    const large = new BinaryWriter()
      .tag(1_000, WireType.LengthDelimited)
      .bytes(Buffer.alloc(MIB + 1_024))
      .finish();
    t.equal(await send(method, large), 'request.too_large', rpcName(method));
    const path = `/${method.parent.typeName}/${method.name}`;
    const answer = await app.rest(path, { apiKey: owner.key, body: `{"x":"${'x'.repeat(MIB + 1_024)}"}` });
    t.match(answer.json, { code: 'resource_exhausted', details: [{ debug: { code: 'request.too_large' } }] });
  }
  await assertAlive(t);
});

t.test(
  'numbers that are no JSON, and values that are none, are refused or dropped in metadata',
  async (t) => {
    const { createAttestation } = AttestationService.method;
    const sha = new BinaryWriter().tag(1, WireType.LengthDelimited).string('ab'.repeat(32)).finish();
    const withValue = (value: Uint8Array) => {
      const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string('a');
      const map = entry.tag(2, WireType.LengthDelimited).bytes(value).finish();
      const struct = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(map).finish();
      const message = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(sha);
      return message.tag(2, WireType.LengthDelimited).bytes(struct).finish();
    };
    for (const n of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const value = new BinaryWriter().tag(2, WireType.Bit64).double(n).finish();
      t.equal(await send(createAttestation, withValue(value)), 'request.invalid', String(n));
    }
    t.equal(await send(createAttestation, withValue(new Uint8Array())), 'request.invalid', 'no schema');
  },
);

t.test('nothing was stored by all that, and nothing secret was logged or answered', async (t) => {
  t.same(await app.pool`SELECT id FROM submission`, []);
  assertNoLeaks(t, app.recorder);
});
