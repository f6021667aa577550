/** Calls of the running service by REST, Connect and two gRPC clients, told alike; what comes back is remembered. */
import {
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type Message,
  type MessageInitShape,
  toJson,
} from '@bufbuild/protobuf';
import { request } from 'undici';
import { isHttpBody } from '../../../src/server/http/rest/request.js';
import { compileReader } from '../../../src/server/json/codec.js';
import { CONCISE_PROBLEM, type RestError, restError } from './rest-error.js';
import { bodyOf, restRequest } from './rpcs.js';
import { type Caller, callers, type Outcome } from './surfaces.js';

/** One surface of the service: the answer is in ProtoJSON everywhere. */
export type Surface = {
  name: string;
  call: <I extends DescMessage>(
    method: DescMethodUnary<I>,
    input: MessageInitShape<I>,
    apiKey: string | undefined,
    headers?: Record<string, string>,
  ) => Promise<Outcome>;
  close: () => void;
};

/** A REST answer as it came. */
export type RestAnswer = { status: number; headers: Record<string, string>; body: Buffer; json: JsonObject };

/** What a REST request is besides its path. */
export type RestOptions = {
  method?: string;
  apiKey?: string | undefined;
  headers?: Record<string, string | string[]>;
  /** Objects are sent as JSON. */
  body?: JsonObject | string | Uint8Array | undefined;
};

/** Told of every outcome. */
export type Witnessing = { answered: (text: string, isError: boolean) => void };

const OTHERS = ['Connect JSON', 'gRPC', 'grpc-js'];

/** REST, Connect, gRPC as connect-node speaks it, gRPC as most Node programs do. */
export function surfacesOf(baseUrl: string, witnessing: Witnessing): Surface[] {
  const all = callers(baseUrl);
  const others = all.filter(({ name }) => OTHERS.includes(name));
  for (const unused of all.filter((caller) => !others.includes(caller))) unused.close();
  return [restSurface(baseUrl, witnessing), ...others.map((caller) => keyed(caller, witnessing))];
}

/** Sends one REST request. */
export async function rest(
  baseUrl: string,
  witnessing: Witnessing,
  path: string,
  { method, apiKey, headers = {}, body }: RestOptions = {},
): Promise<RestAnswer> {
  const isJson = typeof body === 'object' && !(body instanceof Uint8Array);
  const answer = await request(baseUrl + path, {
    method: (method ?? (body === undefined ? 'GET' : 'POST')) as 'GET',
    headers: {
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: isJson ? JSON.stringify(body) : (body ?? null),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  const text = bytes.toString();
  witnessing.answered(text, answer.statusCode >= 400);
  return {
    status: answer.statusCode,
    headers: answer.headers as Record<string, string>,
    body: bytes,
    json: jsonOf(answer.headers['content-type'], bytes),
  };
}

/** The JSON of an answer; of concise problem details the envelope that has the same. To HEAD there is none. */
function jsonOf(contentType: unknown, body: Buffer): JsonObject {
  if (contentType === CONCISE_PROBLEM && body.length > 0)
    return { error: { ...restError(contentType, body) } };
  // The bytes of a tile may begin like an object.
  const text = contentType === 'application/octet-stream' ? '' : body.toString();
  return text.startsWith('{') ? JSON.parse(text) : {};
}

function restSurface(baseUrl: string, witnessing: Witnessing): Surface {
  return {
    name: 'REST',
    close: () => {},
    call: async (method, input, apiKey, headers = {}) => {
      const wanted = restRequest(method, input);
      const sent = bodyOf(wanted);
      const answer = await rest(baseUrl, witnessing, wanted.path, {
        method: wanted.method,
        apiKey,
        body: sent.body,
        headers: { ...sent.headers, ...headers },
      });
      const common = { status: answer.status, grpcCode: 0, headers: answer.headers };
      if (answer.status >= 400) {
        const { code, message, details, request_id } = answer.json.error as RestError;
        return { ...common, code, message, details, requestId: request_id, response: {} };
      }
      const requestId = answer.headers['x-request-id'] ?? '';
      return {
        ...common,
        code: 'ok',
        message: '',
        details: {},
        requestId,
        response: protoJson(method, answer),
      };
    },
  };
}

/** A REST answer as ProtoJSON: read as strictly as a request is. */
function protoJson(method: DescMethodUnary, { headers, body, json }: RestAnswer): JsonObject {
  if (isHttpBody(method.output)) {
    return { contentType: headers['content-type'] ?? '', data: body.toString('base64') };
  }
  const message: Message = compileReader(method.output)(json);
  return toJson(method.output, message) as JsonObject;
}

function keyed(caller: Caller, witnessing: Witnessing): Surface {
  return {
    name: caller.name,
    close: caller.close,
    call: async (method, input, apiKey, headers = {}) => {
      const authorization: Record<string, string> =
        apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
      const outcome = await caller.call(method, input, { headers: { ...authorization, ...headers } });
      const { response, message, details } = outcome;
      const isError = outcome.code !== 'ok';
      witnessing.answered(JSON.stringify(isError ? { message, details } : response), isError);
      return outcome;
    },
  };
}
