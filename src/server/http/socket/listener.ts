import {
  createServer as createHttp1,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import {
  createServer as createHttp2,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer as createHttps, type Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readTlsPair, type TlsFiles } from '../../../config/tls-files.js';
import { detectProtocol } from './detect-protocol.js';
import type { Limits } from './limits.js';
import { boundPipelining, countUnanswered } from './pipelining.js';
import type { NodeRequest, NodeResponse } from './requests.js';

/** One port for HTTP/1.1 and HTTP/2. */
export type Listener = {
  /** Listens, and owns every connection of either version. */
  server: Server;
  /** Every TCP connection. */
  connections: ReadonlySet<Socket>;
  /** Connections of HTTP/1.1, and those whose protocol is not detected yet. */
  sockets: ReadonlySet<Socket>;
  /** HTTP/2 connections. */
  sessions: ReadonlySet<ServerHttp2Session>;
  /** Reads certificate and key again, for new connections; throws when they cannot be used and keeps the old. */
  reloadTls: () => void;
};

type ListenerOptions = {
  limits: Limits;
  tls: TlsFiles | undefined;
  /** Called first for every connection; may close it. */
  onConnection: (socket: Socket) => void;
  onRequest: (req: NodeRequest, res: NodeResponse) => void;
  /** Called for malformed HTTP/1.1; responds, or destroys the socket. */
  onClientError: (error: Error & { code?: string }, socket: Socket) => void;
};

const KEEP_ALIVE_PROBE_MS = 30_000;
const MAX_CHECK_MS = 5_000;
/** Of what a session of HTTP/2 holds; beyond it new streams are reset. */
const MAX_SESSION_MIB = 10;
/** Header fields of a request of HTTP/2, pseudo fields included; the request's own check takes fewer. */
const MAX_HEADER_PAIRS = 1_010;

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
  const http2 = createSessions(limits);
  const connections = new Set<Socket>();
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  server.maxConnections = limits.maxConnections;
  // Every header field is read, within `maxHeaderBytes`: Node ignores those beyond a maximum.
  server.maxHeadersCount = 0;
  takeRequests(server, onRequest);
  takeStreams(http2, onRequest);
  http2.on('session', (session) => {
    remember(sessions, session);
    boundSession(session, limits);
  });
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
      // HTTP/1.1 needs sockets that outlive the client's end; an HTTP/2 session would never learn of it.
      socket.allowHalfOpen = false;
      http2.emit('connection', socket);
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

function takeStreams(http2: Http2Server, onRequest: ListenerOptions['onRequest']): void {
  const begin = (req: Http2ServerRequest, res: Http2ServerResponse) => {
    // A stream that is reset before anything else listens would end the process by its error; its end is noticed anyway.
    req.stream.on('error', () => {});
    skipUnread(req);
    onRequest(req, res);
  };
  http2.on('request', begin);
  http2.on('checkContinue', (req: Http2ServerRequest, res: Http2ServerResponse) => {
    continueWhenRead(req, () => res.headersSent || res.writeContinue());
    begin(req, res);
  });
}

/** Discards the rest of a body once its request is answered: a client that cannot send it would keep the stream open. */
function skipUnread({ stream }: Http2ServerRequest): void {
  if (stream.endAfterHeaders) return;
  stream.once('finish', () => {
    if (!stream.readableEnded) stream.resume();
  });
}

function createSessions(limits: Limits): Http2Server {
  return createHttp2({
    maxSessionMemory: MAX_SESSION_MIB,
    maxHeaderListPairs: MAX_HEADER_PAIRS,
    settings: {
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
      enablePush: false,
    },
  });
}

/** Closes a session whose client does not begin, or has nothing to do. */
function boundSession(session: ServerHttp2Session, { headersTimeoutMs, sessionIdleMs }: Limits): void {
  const timer = setTimeout(() => session.destroy(), headersTimeoutMs);
  session.once('remoteSettings', () => clearTimeout(timer));
  session.once('close', () => clearTimeout(timer));
  session.setTimeout(sessionIdleMs, () => session.close());
}

function remember<T extends Socket | ServerHttp2Session>(set: Set<T>, one: T): void {
  set.add(one);
  one.once('close', () => set.delete(one));
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
 * 10.1.1) is told to send it only once its request was admitted. A refused client may still send the body;
 * HTTP/1.1 closes the connection then, because the next bytes are ambiguous.
 */
function continueWhenRead(req: NodeRequest, proceed: () => void): void {
  const onListener = (event: string | symbol) => {
    if (event !== 'data' && event !== 'readable') return;
    req.off('newListener', onListener);
    proceed();
  };
  req.on('newListener', onListener);
}
