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
import type { Limits } from './limits.js';
import type { NodeRequest, NodeResponse } from './requests.js';
import { boundPipelining, countUnanswered } from './scheduling.js';

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

/** How the HTTP/2 connection preface begins; no HTTP/1.1 method does. */
const PREFACE = Buffer.from('PRI ');

/**
 * Looks at the first bytes of a connection, puts them back, and says what it speaks. A connection that has not sent
 * them in time is closed, as nothing is served yet.
 */
function detectProtocol(socket: Socket, timeoutMs: number, serve: (protocol: 'http1' | 'h2') => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const head = seen.subarray(0, PREFACE.length);
    const maybeH2 = PREFACE.subarray(0, head.length).equals(head);
    if (maybeH2 && head.length < PREFACE.length) return;
    release();
    socket.pause();
    socket.unshift(seen);
    serve(maybeH2 ? 'h2' : 'http1');
    socket.resume();
  };
  const onEnd = () => socket.destroy();
  const onError = () => socket.destroy();
  const release = () => {
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('end', onEnd);
    socket.off('error', onError);
    socket.off('close', release);
  };
  socket.on('data', onData);
  socket.once('end', onEnd);
  socket.once('error', onError);
  socket.once('close', release);
}
