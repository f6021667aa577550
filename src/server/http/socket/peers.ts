import { BlockList, isIPv6, type Socket } from 'node:net';
import { type ApiError, unavailable } from '../../core/errors.js';
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
