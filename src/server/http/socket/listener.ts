import {
  createServer as createHttp1,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttps, type Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readTlsPair, type TlsFiles } from '../../../config/tls-files.js';
import { Http2Connection } from '../h2/connection.js';
import type { Session } from '../h2/exchange.js';
import { detectProtocol } from './detect-protocol.js';
import type { Limits } from './limits.js';
import { type NodeRequest, type NodeResponse, whenClosed } from './requests.js';

/** One port for HTTP/1.1 and HTTP/2. */
export type Listener = {
  /** Listens, and owns every connection of either version. */
  server: Server;
  /** Every TCP connection. */
  connections: ReadonlySet<Socket>;
  /** Connections of HTTP/1.1, and those whose protocol is not detected yet. */
  sockets: ReadonlySet<Socket>;
  /** HTTP/2 connections. */
  sessions: ReadonlySet<Http2Connection>;
  /** Reads certificate and key again, for new connections; throws when they cannot be used and keeps the old. */
  reloadTls: () => void;
};

type ListenerOptions = {
  limits: Limits;
  tls: TlsFiles | undefined;
  /** Called first for every connection; may close it. */
  onConnection: (socket: Socket) => void;
  /** Called for each request of HTTP/2 before it begins. Returns why it and those after it on the connection must not. */
  refusalOf?: (session: Session, headers: IncomingHttpHeaders) => string | undefined;
  onRequest: (req: NodeRequest, res: NodeResponse) => void;
  /** Called for malformed HTTP/1.1; responds, or destroys the socket. */
  onClientError: (error: Error & { code?: string }, socket: Socket) => void;
};

const KEEP_ALIVE_PROBE_MS = 30_000;
const MAX_CHECK_MS = 5_000;

/**
 * Tells the versions apart by ALPN under TLS, else by the connection preface (RFC 9113, section 3.4). The HTTP/1.1
 * server is the one that listens, so that its timeouts work; connections of the other kind are handed on.
 */
export function createListener(options: ListenerOptions): Listener {
  const { limits, tls, onClientError } = options;
  const onRequest = (req: NodeRequest, res: NodeResponse) => {
    countUnanswered(req.socket, res);
    options.onRequest(req, res);
  };
  const server = tls === undefined ? createHttp1(http1Options(limits)) : createSecure(limits, tls);
  const connections = new Set<Socket>();
  const sockets = new Set<Socket>();
  const sessions = new Set<Http2Connection>();
  server.maxConnections = limits.maxConnections;
  // Every header field is read, within `maxHeaderBytes`: Node ignores those beyond a maximum.
  server.maxHeadersCount = 0;
  takeRequests(server, onRequest);
  server.on('clientError', (error, socket) => onClientError(error, socket as Socket));
  takeConnections(server, tls === undefined ? 'connection' : 'secureConnection', (socket, serveHttp1) => {
    remember(sockets, socket);
    const serve = (protocol: 'http1' | 'h2') => {
      if (protocol === 'http1') {
        serveHttp1(socket);
        boundPipelining(socket, limits.maxPipelined);
        return;
      }
      sockets.delete(socket);
      // HTTP/1.1 needs sockets that outlive the client's end; HTTP/2 has nothing to send then.
      socket.allowHalfOpen = false;
      const session = new Http2Connection(socket, options);
      sessions.add(session);
      socket.once('close', () => sessions.delete(session));
    };
    if ((socket as Partial<TLSSocket>).alpnProtocol === 'h2') serve('h2');
    else detectProtocol(socket, limits.headersTimeoutMs, serve);
  });
  server.prependListener('connection', (socket: Socket) => {
    remember(connections, socket);
    options.onConnection(socket);
  });
  return {
    server,
    connections,
    sockets,
    sessions,
    reloadTls: () => tls && (server as HttpsServer).setSecureContext(secureContext(tls)),
  };
}

function takeRequests(server: Server, onRequest: ListenerOptions['onRequest']): void {
  server.on('request', (req: IncomingMessage, res: ServerResponse) => onRequest(req, res));
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    res.shouldKeepAlive = false;
    continueWhenRead(req, () => {
      if (res.headersSent) return;
      res.shouldKeepAlive = true;
      res.writeContinue();
    });
    onRequest(req, res);
  });
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => onRequest(req, res));
}

function remember(set: Set<Socket>, socket: Socket): void {
  set.add(socket);
  socket.once('close', () => set.delete(socket));
}

/** Replaces the server's own connection listener by `take`, which may call it. */
function takeConnections(
  server: Server,
  event: 'connection' | 'secureConnection',
  take: (socket: Socket, serveHttp1: (socket: Socket) => void) => void,
): void {
  const own = server.listeners(event);
  server.removeAllListeners(event);
  const serveHttp1 = (socket: Socket) => {
    for (const listener of own) listener.call(server, socket);
  };
  server.on(event, (socket: Socket) => take(socket, serveHttp1));
}

function http1Options(limits: Limits) {
  return {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: Math.max(limits.requestTimeoutMs, limits.headersTimeoutMs),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, MAX_CHECK_MS),
    // A request without Host is refused by us, in the envelope; Node's refusal has no body.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    noDelay: true,
  };
}

function createSecure(limits: Limits, tls: TlsFiles): HttpsServer {
  return createHttps({
    ...http1Options(limits),
    ...secureContext(tls),
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: limits.headersTimeoutMs,
  });
}

function secureContext(tls: TlsFiles) {
  return { ...readTlsPair(tls, Date.now()), minVersion: 'TLSv1.2' as const };
}

/**
 * Calls `proceed` when somebody begins to read the body: a client that asked (`Expect: 100-continue`, RFC 9110, section
 * 10.1.1) is told to send it only once its request was admitted. One that was refused may send it or not, so that what
 * follows on an HTTP/1.1 connection could be either: the connection is closed.
 */
function continueWhenRead(req: IncomingMessage, proceed: () => void): void {
  const onListener = (event: string | symbol) => {
    if (event !== 'data' && event !== 'readable') return;
    req.off('newListener', onListener);
    proceed();
  };
  req.on('newListener', onListener);
}

/** The end of the headers of a request, of a chunked body, or of an empty line between requests. */
const END = Buffer.from('\n\r\n');

/** Requests of an HTTP/1.1 connection that have no response yet; `proceed` resumes a paused connection. */
type Flow = { unanswered: number; proceed: () => void };

/** What Node sets while it has paused a connection itself, and its parser with it. */
type Pausable = Socket & { _paused?: boolean };

const flows = new WeakMap<Socket, Flow>();

/**
 * Bounds how many requests of a connection of HTTP/1.1 are begun before earlier ones are answered: Node parses all that
 * a read brings, thousands of small ones, and begins each. In place of the whole read Node's parser, the connection's
 * listener for data, gets pieces that begin one request at most; once `max` are unanswered, the
 * connection is paused and the rest is put back.
 */
function boundPipelining(socket: Pausable, max: number): void {
  const [parse] = socket.listeners('data').slice(-1) as ((chunk: Buffer) => void)[];
  if (parse === undefined) throw new Error('Node has not begun to read the connection');
  const flow: Flow = { unanswered: 0, proceed: () => {} };
  const feed = (chunk: Buffer) => {
    let rest = chunk;
    while (rest.length > 0 && !socket.destroyed) {
      if (socket._paused || flow.unanswered >= max) {
        hold(rest);
        return;
      }
      const cut = nextCut(rest);
      parse.call(socket, rest.subarray(0, cut));
      rest = rest.subarray(cut);
    }
  };
  const hold = (rest: Buffer) => {
    socket.pause();
    socket.unshift(rest);
    flow.proceed = () => {
      flow.proceed = () => {};
      // Not at once: others get their turn between one connection's requests, however many it has sent.
      setImmediate(() => socket._paused || socket.resume());
    };
  };
  flows.set(socket, flow);
  socket.off('data', parse);
  socket.on('data', feed);
}

/**
 * Where the next piece ends. One that has a single end begins one request at most, so a request and its body, or the rest of
 * one and the start of the next, are one piece.
 */
function nextCut(rest: Buffer): number {
  const end = rest.indexOf(END);
  return end < 0 || rest.indexOf(END, end + 1) < 0 ? rest.length : end + END.length;
}

/** Counts a request of a connection until its response has ended. */
function countUnanswered(socket: Socket, res: NodeResponse): void {
  const flow = flows.get(socket);
  if (flow === undefined) return;
  flow.unanswered++;
  whenClosed(res, () => {
    flow.unanswered--;
    flow.proceed();
  });
}
