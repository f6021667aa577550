import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { create, type DescMessage, type Message, toJson } from '@bufbuild/protobuf';
import { HttpBodySchema } from '../../../../gen/google/api/httpbody_pb.js';
import type { Call, Handlers } from '../../../../src/server/core/call.js';
import { createLogger } from '../../../../src/server/core/logger.js';
import { createApp } from '../../../../src/server/http/app.js';
import type { Interceptors } from '../../../../src/server/http/call/interceptors.js';
import { createRestHandler, type RestOptions } from '../../../../src/server/http/rest/handler.js';
import { DEFAULT_LIMITS } from '../../../../src/server/http/socket/limits.js';
import type { RequestRecord } from '../../../../src/server/http/socket/requests.js';
import {
  BookSchema,
  EmptySchema,
  EverythingSchema,
  FileResponseSchema,
  LibraryService,
  ListBooksResponseSchema,
} from '../../../gen/library/v1/library_pb.js';

/** A library on a real HTTP server, and what it was called with. */
export type Library = {
  server: Server;
  port: number;
  /** Every call that reached its handler. */
  calls: { call: Call; message: Message }[];
  /** What was reported as internal. */
  failures: unknown[];
};

const text = (value: string) => new TextEncoder().encode(value);

/** Handlers that answer with what they are asked for. */
export const libraryHandlers: Handlers<typeof LibraryService> = {
  createBook: async ({ shelf, title, genre, extra, copies }) =>
    create(BookSchema, { id: 'b1', shelf, title, genre, extra, copies }),
  getBook: async ({ id }) => create(BookSchema, { id }),
  listBooks: async () => create(ListBooksResponseSchema, { data: [{ id: 'b1' }] }),
  listTitles: async ({ limit }) =>
    create(ListBooksResponseSchema, { titles: Array(limit ?? 0).fill('Emma') }),
  updateBook: async ({ book }) => create(BookSchema, book),
  setTags: async ({ id, tags }) => create(BookSchema, { id, tags }),
  deleteBook: async () => create(EmptySchema),
  lendBook: async ({ id, to }) => create(BookSchema, { id, title: `lent to ${to}` }),
  purgeBook: async () => create(EmptySchema),
  downloadBook: async ({ id, format }, call) => {
    call.responseHeaders.set('content-disposition', `attachment; filename="${format}"`);
    return create(HttpBodySchema, { contentType: 'text/plain', data: text(`${id} as ${format}`) });
  },
  readFile: async ({ path }) =>
    create(
      FileResponseSchema,
      path === 'none' ? {} : { content: { contentType: 'text/x', data: text(path) } },
    ),
  writeFile: async ({ content }) =>
    create(FileResponseSchema, { content: { contentType: 'x/y', data: content?.data ?? text('') } }),
  upload: async (body) => create(HttpBodySchema, body),
  echo: async (message) => create(EverythingSchema, message),
};

/** The handlers called by name, for `invoke`. */
export function callHandler(call: Call, message: Message): Promise<Message> {
  const handlers = libraryHandlers as unknown as Record<
    string,
    (message: Message, call: Call) => Promise<Message>
  >;
  const handler = handlers[call.method.localName];
  if (handler === undefined) throw new Error('no handler');
  return handler(message, call);
}

/** The library's routes; `options` replaces parts of how its surface is made. */
export async function openLibrary(
  options: Partial<RestOptions> = {},
): Promise<{ handle: (record: RequestRecord) => void }> {
  const rest = createRestHandler({
    services: [{ desc: LibraryService, handlers: libraryHandlers }],
    admit: async () => {},
    invoke: callHandler,
    rateHeaders: () => [],
    maxBodyBytes: 2 ** 20,
    holdFor: () => () => {},
    holdResponse: () => {},
    onInternalError: () => {},
    ...options,
  });
  const app = createApp({
    rest,
    services: [],
    interceptors: {} as Interceptors,
    holdFor: () => () => {},
    log: createLogger({ level: 'warn', fd: 2 }),
    limits: DEFAULT_LIMITS,
    closing: new AbortController().signal,
    holdResponse: () => {},
    notFound: rest.notFound,
  });
  await app.ready();
  return { handle: app.serve };
}

/** Starts the library on a free port; `options` as for `openLibrary`. */
export async function startLibrary(
  { teardown }: { teardown: (close: () => void) => void },
  options: Partial<RestOptions> = {},
): Promise<Library> {
  const calls: Library['calls'] = [];
  const failures: unknown[] = [];
  let requests = 0;
  const { handle } = await openLibrary({
    invoke: (call, message) => {
      calls.push({ call, message });
      return callHandler(call, message);
    },
    onInternalError: (error) => failures.push(error),
    ...options,
  });
  const server = createServer((req, res) => {
    handle({
      requestId: `req_${++requests}`,
      req,
      res,
      startedMs: 0,
      peer: undefined,
      protocol: 'other',
      call: undefined,
      timesOut: false,
      error: undefined,
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port, calls, failures };
}

/** The last message that reached a handler, as ProtoJSON. */
export function lastMessage({ calls }: Library, schema: DescMessage): unknown {
  return toJson(schema, calls.at(-1)?.message as Message, { useProtoFieldName: true });
}

/** An answer, its body as text. */
export type Reply = { status: number; headers: IncomingHttpHeaders; body: string };

/** Sends `METHOD target`, as it is, and reads the whole answer. */
export function ask(
  { port }: { port: number },
  line: string,
  { headers, body }: { headers?: Record<string, string>; body?: string | Uint8Array } = {},
): Promise<Reply> {
  const [method, path] = line.split(' ');
  return new Promise((resolve, reject) => {
    const req = request({ port, host: '127.0.0.1', method, path, headers, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', () =>
        resolve({
          status: res.statusCode ?? 0,
          headers: res.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    req.on('error', reject);
    req.end(body);
  });
}

/** Sends a JSON body. */
export function askJson(library: { port: number }, line: string, json: unknown): Promise<Reply> {
  const body = typeof json === 'string' ? json : JSON.stringify(json);
  const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
  return ask(library, line, { headers, body });
}

/** The problems of a 400, as `path: message`. */
export function problems({ body }: Reply): string[] {
  const { error } = JSON.parse(body) as {
    error: { details: { errors?: { path: string; message: string }[] } };
  };
  return (error.details.errors ?? []).map(({ path, message }) => `${path}: ${message}`);
}

/** The code in an error's envelope. */
export function codeOf({ body }: Reply): string {
  return (JSON.parse(body) as { error: { code: string } }).error.code;
}

/** A bare connection, what it has received so far, and its end. */
export type Wire = {
  socket: Socket;
  received: () => string;
  closed: Promise<void>;
  until: (part: string) => Promise<void>;
};

/** Connects without an HTTP client. */
export function openWire({ port }: { port: number }): Wire {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  // A reset is an end like any other here; what was received before is what counts.
  socket.on('error', () => {});
  const until = (part: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (received.includes(part)) resolve();
      };
      look();
      socket.on('data', look);
      socket.once('close', () => reject(new Error(`closed before ${JSON.stringify(part)}: ${received}`)));
    });
  return { socket, received: () => received, closed, until };
}
