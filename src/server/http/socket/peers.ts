import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIPv6, type Socket } from 'node:net';
import { type ApiError, unavailable } from '../../core/errors.js';
import type { Session } from '../h2/exchange.js';
import { Http2Code } from '../h2/protocol.js';
import type { Limits } from './limits.js';
import type { RequestRecord } from './requests.js';

type PeerLimits = Pick<
  Limits,
  'maxRequests' | 'maxConnectionsPerPeer' | 'maxRequestsPerPeer' | 'trustedProxies'
>;

/** Counts open connections and requests, in total and by client address. */
export type Peers = {
  /** Counts a connection until it closes, or closes it at once when its address has too many. */
  addConnection: (socket: Socket) => void;
  /** The address or network that a connection counts for; undefined when it is a trusted proxy's. */
  find: (socket: Socket) => string | undefined;
  /** Counts a request, and sets its `peer`. Returns the refusal of one beyond the limit. */
  addRequest: (record: RequestRecord) => ApiError | undefined;
  /** Counts it no more. Call once, when it has ended. */
  removeRequest: (record: RequestRecord) => void;
};

const RETRY_SECONDS = 1;
/** An IPv6 client counts as its /64 network, which providers assign to one customer. */
const IPV6_GROUPS = 4;

/** Makes empty counts. Trusted proxies, which many clients share, are bound only by the totals. */
export function createPeers(limits: PeerLimits): Peers {
  const trusted = trustedAddresses(limits.trustedProxies);
  const connections = new Map<string, number>();
  const requests = new Map<string, number>();
  let allRequests = 0;
  const known = new WeakMap<Socket, string | undefined>();
  const findPeer = (socket: Socket) => {
    if (known.has(socket)) return known.get(socket);
    const { remoteAddress = '' } = socket;
    const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '');
    const peer = isTrusted(trusted, address) ? undefined : peerOf(address);
    known.set(socket, peer);
    return peer;
  };
  return {
    find: findPeer,
    addConnection(socket) {
      const peer = findPeer(socket);
      if (peer === undefined) return;
      if ((connections.get(peer) ?? 0) >= limits.maxConnectionsPerPeer) {
        socket.destroy();
        return;
      }
      change(connections, peer, 1);
      socket.once('close', () => change(connections, peer, -1));
    },
    addRequest(record) {
      const peer = findPeer(record.req.socket);
      record.peer = peer;
      const ofPeer = peer === undefined ? 0 : (requests.get(peer) ?? 0);
      allRequests++;
      if (peer !== undefined) change(requests, peer, 1);
      if (allRequests > limits.maxRequests) return unavailable('too many requests are open', RETRY_SECONDS);
      if (ofPeer < limits.maxRequestsPerPeer) return undefined;
      return unavailable('too many requests of this address are open', RETRY_SECONDS);
    },
    removeRequest({ peer }) {
      allRequests--;
      if (peer !== undefined) change(requests, peer, -1);
    },
  };
}

function change(counts: Map<string, number>, peer: string, by: 1 | -1): void {
  const count = (counts.get(peer) ?? 0) + by;
  if (count === 0) counts.delete(peer);
  else counts.set(peer, count);
}

function trustedAddresses(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const family = familyOf(address);
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

function isTrusted(list: BlockList, address: string): boolean {
  return address !== '' && list.check(address, familyOf(address));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

/** The address, or the /64 network of an IPv6 address. */
function peerOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  while (tail !== undefined && groups.length + last.length < 8) groups.push('0');
  return [...groups, ...last].slice(0, IPV6_GROUPS).join(':');
}

/** What a connection may still ask for without credentials, as of a time and of the bytes received by then. */
type Credit = { left: number; atMs: number; bytes: number };

/** Bounds what connections of HTTP/2 ask for without valid credentials. */
type Calm = {
  /** Counts a request before it begins, unless it has credentials. Returns why it must not begin; undefined if it may. */
  begin: (session: Session, headers: IncomingHttpHeaders) => string | undefined;
  /** Counts what a request has cost beyond that. Call once, when it ends. */
  end: (record: RequestRecord) => void;
};

/**
 * A request on HTTP/2 can be of 15 bytes, as header fields that come again take one byte each, but costs as much as any
 * other. Requests with header fields of their own are longer.
 */
const BYTES_OF_A_REQUEST = 32;
/** How many shorter ones a connection has at first, and at most. */
const BURST = 200;
/** For clients that ask the same over and over, such as health checks. */
const REQUESTS_A_SECOND = 50;
const TOO_MANY = 'too many short requests without credentials';

/**
 * Bounds the requests without valid credentials on a connection of HTTP/2 by its bytes: beyond a burst and a rate, each
 * needs `BYTES_OF_A_REQUEST`. A connection that goes further takes no more of them: it ends with ENHANCE_YOUR_CALM (RFC
 * 9113, section 10.5) once those that have begun are answered. Requests with credentials, which have limits of their own,
 * cost nothing. A request's `work` is how many it counts for.
 */
export function createCalm(monotonicMs: () => number): Calm {
  const credits = new WeakMap<Session, Credit>();
  const charge = (session: Session, work: number) => {
    const credit = credits.get(session) ?? open(session);
    refill(credit, session.socket.bytesRead, monotonicMs());
    credit.left -= work;
    return credit.left >= 0;
  };
  const open = (session: Session) => {
    const credit = { left: BURST, atMs: monotonicMs(), bytes: session.socket.bytesRead };
    credits.set(session, credit);
    return credit;
  };
  return {
    begin: (session, headers) => (hasCredentials(headers) || charge(session, 1) ? undefined : TOO_MANY),
    end({ req, call, work }) {
      if (!('session' in req)) return;
      const { session, headers } = req;
      if (session.destroyed || call?.principal !== undefined || call?.session !== undefined) return;
      const more = hasCredentials(headers) ? work : work - 1;
      if (more > 0 && !charge(session, more)) session.close(Http2Code.ENHANCE_YOUR_CALM, TOO_MANY);
    },
  };
}

/** Whether a request carries credentials, valid or not. */
function hasCredentials({ authorization, cookie }: IncomingHttpHeaders): boolean {
  return authorization !== undefined || cookie !== undefined;
}

/** What has just been read counts beyond the burst: it may hold as many requests. */
function refill(credit: Credit, bytes: number, nowMs: number): void {
  const passed = ((nowMs - credit.atMs) / 1_000) * REQUESTS_A_SECOND;
  credit.left = Math.min(BURST, credit.left + passed) + (bytes - credit.bytes) / BYTES_OF_A_REQUEST;
  credit.atMs = nowMs;
  credit.bytes = bytes;
}
