/** A TCP proxy between one process of the service and one server, with the faults of a network. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Target } from './proxy.js';

/**
 * What a link does with bytes. `one-way` passes on what the client sends and nothing of the answers; `half-open` ends
 * the server's side and tells the client nothing, for the connections that stand and those that come.
 */
export type LinkMode = 'passes' | 'refuses' | 'stalls' | 'one-way' | 'half-open';

export type Link = {
  port: number;
  /** Sends new connections there, and resets those that stand. */
  point(target: Target): void;
  set(mode: LinkMode): void;
  /** Holds back each piece of data for that long; 0 for not at all. */
  delay(ms: number): void;
  /** Ends every connection. */
  cut(how: 'reset' | 'end'): void;
  close(): Promise<void>;
};

type Pair = { client: Socket; upstream: Socket | undefined; deaf: boolean };

/** Starts a link on a free port of the loopback address. */
export async function startLink(first: Target): Promise<Link> {
  const state = { target: first, mode: 'passes' as LinkMode, delayMs: 0, pairs: new Set<Pair>() };
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    accept(state, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut: Link['cut'] = (how) => {
    for (const pair of state.pairs) end(state, pair, how);
  };
  return {
    port: (server.address() as AddressInfo).port,
    point: (target) => {
      state.target = target;
      cut('reset');
    },
    set: (mode) => {
      state.mode = mode;
      if (mode === 'refuses') cut('reset');
      for (const pair of state.pairs) apply(state, pair);
    },
    delay: (ms) => {
      state.delayMs = ms;
    },
    cut,
    close: async () => {
      cut('reset');
      // One whose peer does not read has data to send for ever.
      for (const client of clients) client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

type State = { target: Target; mode: LinkMode; delayMs: number; pairs: Set<Pair> };

function accept(state: State, client: Socket): void {
  client.on('error', () => {});
  if (state.mode === 'refuses') {
    client.resetAndDestroy();
    return;
  }
  const upstream = state.mode === 'half-open' ? undefined : connect(state.target);
  const pair: Pair = { client, upstream, deaf: upstream === undefined };
  state.pairs.add(pair);
  client.setNoDelay(true);
  client.on('close', () => end(state, pair, 'end'));
  if (upstream === undefined) {
    client.resume();
    return;
  }
  upstream.setNoDelay(true);
  upstream.on('error', () => {});
  upstream.on('end', () => {
    if (!pair.deaf) client.end();
  });
  upstream.on('close', () => {
    if (!pair.deaf) end(state, pair, client.writableEnded ? 'end' : 'reset');
  });
  pass(state, pair, client, upstream);
  pass(state, pair, upstream, client);
  apply(state, pair);
}

/** Delays keep the order: a later piece is never due before an earlier one. */
function pass(state: State, pair: Pair, from: Socket, to: Socket): void {
  let due = 0;
  from.on('data', (data) => {
    if (pair.deaf) return;
    const now = performance.now();
    due = Math.max(due, now + state.delayMs);
    if (due <= now) to.write(data);
    else setTimeout(() => to.writable && to.write(data), due - now);
  });
}

function apply({ mode }: State, pair: Pair): void {
  const { client, upstream } = pair;
  if (upstream === undefined || pair.deaf) return;
  if (mode === 'half-open') {
    pair.deaf = true;
    upstream.destroy();
    return;
  }
  if (mode === 'stalls') client.pause();
  else client.resume();
  if (mode === 'stalls' || mode === 'one-way') upstream.pause();
  else upstream.resume();
}

function end({ pairs }: State, pair: Pair, how: 'reset' | 'end'): void {
  if (!pairs.delete(pair)) return;
  pair.upstream?.destroy();
  if (how === 'end') pair.client.destroySoon();
  else pair.client.resetAndDestroy();
}
