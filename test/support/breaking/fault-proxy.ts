/** An HTTP proxy before a store of objects that breaks single requests in the ways that stores and networks do. */
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';

type Exchange = { request: IncomingMessage; response: ServerResponse; target: URL };

/** What happens to a request in place of being forwarded. */
export type Fault = (exchange: Exchange) => Promise<void> | void;

export type FaultProxy = {
  url: string;
  /** The requests so far, as `PUT /path?query`. */
  requests: string[];
  /** How many requests are under way. */
  open(): number;
  /** Lets a fault happen to the next request that matches; resolves when it begins. */
  breakNext(matches: (request: IncomingMessage) => boolean, fault: Fault): Promise<void>;
  /** Ends all connections and takes no more. */
  close(): Promise<void>;
  /** Takes the conditions out of all requests from now on. */
  ignoreConditions(): void;
};

/** Starts a proxy on a free port of 127.0.0.1, until the test ends. */
export async function startFaultProxy(t: Pick<Test, 'teardown'>, target: string): Promise<FaultProxy> {
  const traps: { matches: (request: IncomingMessage) => boolean; fault: Fault; sprung: () => void }[] = [];
  const requests: string[] = [];
  let open = 0;
  let isIgnoring = false;
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    open++;
    response.once('close', () => open--);
    for (const end of [request, response]) end.on('error', () => {});
    if (isIgnoring) dropConditions(request);
    const index = traps.findIndex(({ matches }) => matches(request));
    const [trap] = index < 0 ? [] : traps.splice(index, 1);
    trap?.sprung();
    void (trap?.fault ?? forward)({ request, response, target: new URL(target) });
  });
  server.on('connection', (socket) => socket.on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.teardown(close);
  return {
    close,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    open: () => open,
    ignoreConditions: () => {
      isIgnoring = true;
    },
    breakNext: (matches, fault) => new Promise((sprung) => traps.push({ matches, fault, sprung })),
  };
}

function dropConditions(request: IncomingMessage): void {
  delete request.headers['if-match'];
  delete request.headers['if-none-match'];
  request.url = request.url?.replace(/([?&])ifGenerationMatch=[0-9]+/, '$1');
}

/** Matches a method. */
export function isMethod(method: string): (request: IncomingMessage) => boolean {
  return (request) => request.method === method;
}

/** Answers without forwarding, once the whole request is here. */
export function refuse(status: number, headers: Record<string, string> = {}, body = ''): Fault {
  return async ({ request, response }) => {
    for await (const _ of request);
    response.writeHead(status, headers).end(body);
  };
}

/** Sends bytes of any kind as the answer, again and again until the client hangs up if `forever`. */
export function answerRaw(bytes: string, { forever = '' } = {}): Fault {
  return async ({ request }) => {
    const { socket } = request;
    request.resume();
    socket.write(bytes);
    const isEndless = forever !== '';
    while (isEndless && !socket.destroyed) await new Promise((resolve) => socket.write(forever, resolve));
    socket.end();
  };
}

/** Never answers, and reads nothing. */
export const hang: Fault = ({ request }) => void request.pause();

/** Breaks the connection after so many bytes of the request's body. */
export function cutAfter(bytes: number): Fault {
  return async ({ request }) => {
    const { socket } = request;
    let read = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      read += chunk.length;
      if (read >= bytes) break;
    }
    socket.resetAndDestroy();
  };
}

/** Forwards the request, waits for the whole answer, and breaks the connection in its place. */
export const loseAnswer: Fault = async (exchange) => {
  const answer = await forwardRequest(exchange);
  for await (const _ of answer);
  exchange.request.socket.resetAndDestroy();
};

/** Forwards the request's body in pieces with pauses between them. */
export function slowly(piece: number, pauseMs: number): Fault {
  return (exchange) => forward(exchange, (body) => inPieces(body, piece, pauseMs));
}

async function* inPieces(body: AsyncIterable<Buffer>, piece: number, pauseMs: number) {
  for await (const chunk of body) {
    for (let start = 0; start < chunk.length; start += piece) {
      yield chunk.subarray(start, start + piece);
      await delay(pauseMs);
    }
  }
}

type Reshape = (body: AsyncIterable<Buffer>) => AsyncIterable<Buffer>;

/** Passes a request on as it is. */
async function forward(exchange: Exchange, reshape?: Reshape): Promise<void> {
  const { response } = exchange;
  try {
    const answer = await forwardRequest(exchange, reshape);
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    pipeline(answer, response, () => {});
  } catch {
    response.destroy();
  }
}

/** The names of hosts stay those that the client used, as they are in what it signed. */
async function forwardRequest(
  { request, target }: Exchange,
  reshape: Reshape = (body) => body,
): Promise<IncomingMessage> {
  const { method, headers, url } = request;
  const upstream = httpRequest(new URL(url ?? '/', target), {
    method: method ?? 'GET',
    headers,
    agent: false,
  });
  const answered = once(upstream, 'response') as Promise<[IncomingMessage]>;
  pipeline(reshape(request as AsyncIterable<Buffer>), upstream, () => {});
  const [answer] = await answered;
  return answer;
}
