// The same calls by every surface's own stock client, their outcomes brought to one form.
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type JsonObject,
  type Message,
  type MessageInitShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { ConnectError, type Transport } from '@connectrpc/connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node';
import { credentials, Metadata, makeGenericClientConstructor, type ServiceError } from '@grpc/grpc-js';
import type { Test } from 'tap';
import { request } from 'undici';
import { ErrorDetailSchema } from '../../../gen/attestation/v1/errors_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';

/** What came of a call, whichever way it went. */
export type Outcome = {
  /** `ok` or the dotted code. */
  code: string;
  /** The HTTP status on REST, 0 elsewhere. */
  status: number;
  /** The gRPC code, 0 for success and on REST. */
  grpcCode: number;
  message: string;
  details: JsonObject;
  /** As the error says, or the header on success. */
  requestId: string;
  /** Of the answer, trailers included, by lower-case name. */
  headers: Record<string, string>;
  response: JsonObject;
};

export type CallOptions = { headers?: Record<string, string>; timeoutMs?: number };

/** One way to call. */
export type Caller = {
  name: string;
  isRest: boolean;
  call: <I extends DescMessage>(
    method: DescMethodUnary<I>,
    input: MessageInitShape<I>,
    options?: CallOptions,
  ) => Promise<Outcome>;
  close: () => void;
};

const ANY_CODE = { grpcCode: 0, status: 0, message: '', details: {}, response: {} };

/** Every surface over every HTTP version it runs on. */
export function callers(baseUrl: string): Caller[] {
  const manager = new Http2SessionManager(baseUrl);
  const http2 = { httpVersion: '2', baseUrl, sessionManager: manager } as const;
  const http1 = { httpVersion: '1.1', baseUrl } as const;
  const abort = () => manager.abort();
  return [
    restOverHttp1(baseUrl),
    restOverHttp2(baseUrl),
    byTransport('Connect JSON', createConnectTransport({ ...http1, useBinaryFormat: false })),
    byTransport(
      'Connect JSON by GET',
      createConnectTransport({ ...http1, useBinaryFormat: false, useHttpGet: true }),
    ),
    byTransport('Connect binary', createConnectTransport(http1)),
    byTransport('Connect over HTTP/2', createConnectTransport(http2), abort),
    byTransport('gRPC', createGrpcTransport({ baseUrl, sessionManager: manager }), abort),
    byTransport('gRPC-Web', createGrpcWebTransport(http1)),
    byTransport('gRPC-Web over HTTP/2', createGrpcWebTransport(http2), abort),
    byGrpcJs(baseUrl),
  ];
}

function byTransport(name: string, transport: Transport, close = () => {}): Caller {
  return {
    name,
    isRest: false,
    close,
    async call(method, input, { headers, timeoutMs } = {}) {
      try {
        const { header, trailer, message } = await transport.unary(
          method,
          undefined,
          timeoutMs,
          headers,
          input,
        );
        const all = { ...Object.fromEntries(trailer), ...Object.fromEntries(header) };
        return success(all, toJson(method.output, message) as JsonObject);
      } catch (error) {
        return failure(ConnectError.from(error), {});
      }
    },
  };
}

/** The gRPC client that most Node programs have. */
function byGrpcJs(baseUrl: string): Caller {
  const GenericClient = makeGenericClientConstructor({}, 'generic');
  const client = new GenericClient(new URL(baseUrl).host, credentials.createInsecure());
  return {
    name: 'grpc-js',
    isRest: false,
    close: () => client.close(),
    call: (method, input, { headers = {}, timeoutMs } = {}) =>
      new Promise((resolve) => {
        const metadata = new Metadata();
        for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
        let leading: Record<string, string> = {};
        const done = (error: ServiceError | null, message?: Message) => {
          if (error === null && message !== undefined) {
            resolve(success(leading, toJson(method.output, message) as JsonObject));
          } else resolve(failure(errorOfGrpcJs(error as ServiceError), leading));
        };
        client
          .makeUnaryRequest(
            `/${method.parent.typeName}/${method.name}`,
            (message: Message) => Buffer.from(toBinary(method.input, message as never)),
            (bytes) => fromBinary(method.output, bytes) as Message,
            create(method.input, input) as Message,
            metadata,
            timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
            done,
          )
          .on('metadata', (got: Metadata) => {
            leading = headersOf(got);
          });
      }),
  };
}

function errorOfGrpcJs({ code, details, metadata }: ServiceError): ConnectError {
  const headers = new Headers(headersOf(metadata));
  return findTrailerError(headers) ?? new ConnectError(details, code as number, headers);
}

function headersOf(metadata: Metadata): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata.getMap()).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : value.toString('base64'),
    ]),
  );
}

function success(headers: Record<string, string>, response: JsonObject): Outcome {
  return { ...ANY_CODE, code: 'ok', headers, requestId: headers['x-request-id'] ?? '', response };
}

function failure(error: ConnectError, leading: Record<string, string>): Outcome {
  const [detail] = error.findDetails(ErrorDetailSchema);
  return {
    ...ANY_CODE,
    code: detail?.code ?? 'without detail',
    grpcCode: error.code,
    message: error.rawMessage,
    details: detail?.details ?? {},
    requestId: detail?.requestId ?? '',
    headers: { ...leading, ...Object.fromEntries(error.metadata) },
  };
}

type RestRequest = { method: string; path: string; body: string | undefined };

/** The documented REST request of the methods that tests use. */
function restRequest(method: DescMethodUnary, message: JsonObject): RestRequest {
  switch (method.name) {
    case 'GetHealth':
      return { method: 'GET', path: '/v1/service/health', body: undefined };
    case 'GetBatch':
      return { method: 'GET', path: `/v1/batches/${message.id}`, body: undefined };
    case 'ListBatches':
      return { method: 'GET', path: `/v1/batches?limit=${message.limit}`, body: undefined };
    case 'CreateAttestation':
      return { method: 'POST', path: '/v1/attestations', body: JSON.stringify(message) };
    default:
      throw new Error(`no REST request is known for ${method.name}`);
  }
}

type Exchange = (
  request: RestRequest,
  headers: Record<string, string>,
) => Promise<{ status: number; headers: Record<string, string>; body: string }>;

function restCaller(name: string, exchange: Exchange, close: () => void): Caller {
  return {
    name,
    isRest: true,
    close,
    async call(method, input, { headers = {} } = {}) {
      const message = toJson(method.input, create(method.input, input), { useProtoFieldName: true });
      const wanted = restRequest(method, message as JsonObject);
      const type: Record<string, string> =
        wanted.body === undefined ? {} : { 'content-type': 'application/json' };
      const answer = await exchange(wanted, { ...headers, ...type });
      const json = JSON.parse(answer.body);
      if (answer.status < 300) return { ...success(answer.headers, json), status: answer.status };
      const { code, message: text, details, request_id: requestId } = json.error;
      const { status, headers: got } = answer;
      return { ...ANY_CODE, code, status, message: text, details, requestId, headers: got };
    },
  };
}

function restOverHttp1(baseUrl: string): Caller {
  const exchange: Exchange = async ({ method, path, body }, headers) => {
    const answer = await request(baseUrl + path, { method: method as 'GET', headers, body: body ?? null });
    return {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
      body: await answer.body.text(),
    };
  };
  return restCaller('REST', exchange, () => {});
}

function restOverHttp2(baseUrl: string): Caller {
  let session: ClientHttp2Session | undefined;
  const exchange: Exchange = async (wanted, headers) => {
    session ??= connectHttp2(baseUrl);
    return http2Exchange(session, wanted, headers);
  };
  return restCaller('REST over HTTP/2', exchange, () => session?.close());
}

/** One request on an HTTP/2 session. */
export async function http2Exchange(
  session: ClientHttp2Session,
  { method, path, body }: RestRequest,
  headers: Record<string, string>,
): ReturnType<Exchange> {
  const stream = session.request(
    { ':method': method, ':path': path, ...headers },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  const got = await new Promise<Record<string, string>>((resolve, reject) => {
    stream.once('response', (answer) => resolve(answer as unknown as Record<string, string>));
    stream.once('error', reject);
    stream.once('close', () => reject(new Error(`stream closed with code ${stream.rstCode}`)));
  });
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return { status: Number(got[':status']), headers: got, body: text };
}

/** Asserts that the server answers on both HTTP versions. */
export async function livesOn(t: Test, { baseUrl, key }: { baseUrl: string; key: string }): Promise<void> {
  for (const caller of callers(baseUrl).filter(({ name }) => name === 'REST' || name === 'gRPC')) {
    const outcome = await caller.call(
      InfoService.method.getHealth,
      {},
      { headers: { authorization: `Bearer ${key}` } },
    );
    t.equal(outcome.code, 'ok', `${caller.name} is still served`);
    caller.close();
  }
}
