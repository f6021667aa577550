/** Limits of one listener: every wait and every buffer is bounded. */
export type Limits = {
  /** Of a request body, as sent and inflated; most RPCs need less and take no more than that. */
  maxBodyBytes: number;
  /** Of a message to the RPCs that anyone may call. */
  maxPublicBytes: number;
  /** Of all request bodies in memory. */
  maxHeldBytes: number;
  /** Of all large responses that clients have not read. */
  maxUnreadBytes: number;
  /** Of all request headers together. */
  maxHeaderBytes: number;
  /** Beyond it new connections are closed at once. */
  maxConnections: number;
  /** Beyond it new requests are refused; also bounds what their connections hold of bodies that are not read yet. */
  maxRequests: number;
  /** Requests that start in one turn of the event loop. */
  maxStartsPerTurn: number;
  /** Of one address, or network of IPv6, that is no trusted proxy. */
  maxConnectionsPerPeer: number;
  maxRequestsPerPeer: number;
  /** Addresses and networks that many clients share. */
  trustedProxies: readonly string[];
  /** Unanswered requests of one HTTP/1.1 connection; it is paused then. */
  maxPipelined: number;
  /** Concurrent streams of one HTTP/2 connection. */
  maxStreams: number;
  /** From a connection's first byte, or a request's, to the end of its headers. */
  headersTimeoutMs: number;
  /** From a request's first byte to the end of its body. */
  requestTimeoutMs: number;
  /** From a request's first byte to its response's, on REST; then it is `service.deadline_exceeded`. */
  responseTimeoutMs: number;
  /** From a request's first byte to its response's last. */
  sendTimeoutMs: number;
  /** Without a chunk of a response being read; then the connection is closed. */
  sendIdleMs: number;
  /** An idle HTTP/1.1 connection; longer than the 60 s after which common proxies drop theirs. */
  keepAliveTimeoutMs: number;
  /** An HTTP/2 connection without traffic. */
  sessionIdleMs: number;
  /** Streams of the RPCs that anyone may call, all together. */
  maxOpenStreams: number;
  /** Messages that a client sends on one such stream. */
  maxStreamMessages: number;
  /** One such stream, from its start. */
  maxStreamMs: number;
  /** How long `close` lets idle connections learn of it before it closes them. */
  idleGraceMs: number;
  /** How long `close` waits for open requests. */
  graceMs: number;
};

export const DEFAULT_LIMITS: Readonly<Limits> = {
  maxBodyBytes: 1024 * 1024,
  maxPublicBytes: 4 * 1024,
  maxHeldBytes: 64 * 1024 * 1024,
  maxUnreadBytes: 64 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 10_000,
  maxRequests: 4_096,
  maxStartsPerTurn: 64,
  maxConnectionsPerPeer: 1_000,
  maxRequestsPerPeer: 1_000,
  trustedProxies: ['127.0.0.0/8', '::1'],
  maxPipelined: 4,
  maxStreams: 256,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  responseTimeoutMs: 60_000,
  sendTimeoutMs: 600_000,
  sendIdleMs: 15_000,
  keepAliveTimeoutMs: 65_000,
  sessionIdleMs: 300_000,
  maxOpenStreams: 1_000,
  maxStreamMessages: 64,
  maxStreamMs: 3_600_000,
  idleGraceMs: 250,
  graceMs: 20_000,
};
