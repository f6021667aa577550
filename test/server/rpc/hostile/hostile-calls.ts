/** Calls that nobody should make, for any RPC, by gRPC and Connect. */
import { randomBytes } from 'node:crypto';
import { type DescMessage, type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { credentials, Metadata, makeGenericClientConstructor, type ServiceError } from '@grpc/grpc-js';
import type { Test } from 'tap';
import { error as errorOption } from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCodeSchema, ErrorDetailSchema } from '../../../../gen/attestation/v1/errors_pb.js';
import type { App } from '../../../support/app.js';
import { hostileBodies, objectAt } from './hostile-requests.js';

/** The gRPC code of every dotted code. */
const GRPC_CODES = new Map(
  ErrorCodeSchema.values
    .filter(({ number }) => number !== 0)
    .map((value) => getOption(value, errorOption))
    .map(({ code, grpcCode }) => [code, grpcCode]),
);

const GenericClient = makeGenericClientConstructor({}, 'generic');

/** Sends bytes as the message of a call. @returns `ok`, the dotted code, or what is wrong with the error */
export type Send = (method: DescMethodUnary, bytes: Uint8Array, token: string) => Promise<string>;

/** A client of an app by gRPC, until the test ends. */
export function openSender(t: Test, app: App): Send {
  const client = new GenericClient(new URL(app.baseUrl).host, credentials.createInsecure(), {
    'grpc.max_send_message_length': -1,
  });
  t.teardown(() => client.close());
  const raw = (buffer: Buffer) => buffer;
  return (method, bytes, token) =>
    new Promise((resolve) => {
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${token}`);
      const path = `/${method.parent.typeName}/${method.name}`;
      const done = (error: ServiceError | null) => {
        app.recorder.answered(error?.details ?? '', error !== null);
        resolve(error === null ? 'ok' : codeOf(error));
      };
      client.makeUnaryRequest(path, raw, raw, Buffer.from(bytes), metadata, {}, done);
    });
}

/** Sends a method all sorts of bytes. @returns what is neither success nor a documented error */
export async function sendHostileMessages(
  send: Send,
  method: DescMethodUnary,
  token: string,
): Promise<string[]> {
  const codes = await Promise.all(hostileMessages(method.input).map((bytes) => send(method, bytes, token)));
  const wrong = codes.filter(
    (code) => code !== 'ok' && (!GRPC_CODES.has(code) || code.startsWith('service.')),
  );
  return [...new Set(wrong)];
}

/** Sends a method all sorts of JSON by Connect. @returns what is neither success nor a documented error */
export async function sendHostileBodies(app: App, method: DescMethodUnary, token: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const body of hostileBodies(method.input)) {
    const answer = await app.rest(`/${method.parent.typeName}/${method.name}`, { apiKey: token, body });
    if (answer.status < 300) continue;
    const [detail = {}] = (answer.json.details ?? []) as { debug?: { code: string } }[];
    const code = detail.debug?.code ?? String(objectAt(answer.json, 'error').code);
    if (answer.status >= 500 || !GRPC_CODES.has(code)) wrong.push(`${body.slice(0, 60)}: ${answer.body}`);
  }
  return wrong.slice(0, 20);
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

/** The field within itself, over and over: written from its innermost end. */
function nested(number: number, levels: number): Uint8Array {
  const heads: Uint8Array[] = [];
  let length = 0;
  for (let level = 0; level < levels; level++) {
    const head = new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(length).finish();
    heads.push(head);
    length += head.length;
  }
  return Buffer.concat(heads.reverse());
}
