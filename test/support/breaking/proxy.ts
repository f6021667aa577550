/** A TCP proxy with a stable port, which can be pointed elsewhere, closed for a while, and told to lose an answer. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Where bytes go to. */
export type Target = { host: string; port: number };

/** When a connection breaks, seen from a statement that `matches` what the client sends. */
export type Break = 'before the request arrives' | 'before the answer arrives';

export type TcpProxy = {
  port: number;
  /** Sends new connections there; those that stand are broken. */
  point(target: Target): void;
  /** Breaks every connection: as a server does that is killed, with a reset or in an orderly way. */
  cut(how?: 'reset' | 'end'): void;
  /** While closed, connections are accepted and broken at once. */
  setOpen(open: boolean): void;
  /**
   * Breaks the next connection on which the client sends something that matches, once: before it is passed on, or
   * after the server has answered it in full, with nothing of the answer passed on. Resolves when that has happened.
   */
  breakNext(when: Break, matches: (sent: Buffer) => boolean): Promise<void>;
  /** The same, but the connection is left standing, with nothing more passed on. */
  holdNext(when: Break, matches: (sent: Buffer) => boolean): Promise<void>;
  close(): Promise<void>;
};

/** ReadyForQuery but for its last byte (PostgreSQL's protocol, version 3): the statement before it has had its effect. */
const READY_FOR_QUERY = Buffer.from('5a00000005', 'hex');
const SYNC = Buffer.from('5300000004', 'hex');
const SIMPLE_QUERY = 0x51;

type Trap = { when: Break; hold: boolean; matches: (sent: Buffer) => boolean; sprung: () => void };

/** Starts a proxy on a free port of the loopback address. */
export async function startProxy(first: Target): Promise<TcpProxy> {
  const pairs = new Set<End>();
  let target = first;
  let open = true;
  let trap: Trap | undefined;
  const cut: TcpProxy['cut'] = (how = 'reset') => {
    for (const end of pairs) end(how);
  };
  const setTrap = (set: Omit<Trap, 'sprung'>) =>
    new Promise<void>((sprung) => {
      trap = { ...set, sprung };
    });
  const server = createServer((client) => {
    if (!open) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    const { end } = join(client, connect(target), {
      find: (sent) => {
        if (!trap?.matches(sent)) return undefined;
        const found = trap;
        trap = undefined;
        return found;
      },
      ended: () => pairs.delete(end),
    });
    pairs.add(end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    point: (next) => {
      target = next;
      cut();
    },
    cut,
    setOpen: (next) => {
      open = next;
      if (!open) cut();
    },
    breakNext: (when, matches) => setTrap({ when, matches, hold: false }),
    holdNext: (when, matches) => setTrap({ when, matches, hold: true }),
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}

type End = (how: 'reset' | 'end') => void;
type Watch = { find: (sent: Buffer) => Trap | undefined; ended: () => void };

/** Passes bytes on between two sockets until either ends or the trap springs. */
function join(client: Socket, upstream: Socket, watch: Watch): { end: End } {
  let caught: Trap | undefined;
  let isAsked = false;
  let swallowed = Buffer.alloc(0);
  const end: End = (how) => {
    if (how === 'end') client.destroy();
    else client.resetAndDestroy();
    upstream.destroy();
    watch.ended();
  };
  const spring = ({ hold, sprung }: Trap) => {
    if (!hold) end('reset');
    sprung();
  };
  client.on('data', (sent) => {
    caught ??= watch.find(sent);
    // A statement may be described first; only what follows is the request to carry it out.
    isAsked ||=
      caught !== undefined && (sent[0] === SIMPLE_QUERY || sent.subarray(-SYNC.length).equals(SYNC));
    if (caught?.when === 'before the request arrives') spring(caught);
    else upstream.write(sent);
  });
  upstream.on('data', (answer) => {
    if (caught === undefined || !isAsked) {
      client.write(answer);
      return;
    }
    swallowed = Buffer.concat([swallowed, answer]);
    if (!swallowed.subarray(-READY_FOR_QUERY.length - 1, -1).equals(READY_FOR_QUERY)) return;
    spring(caught);
  });
  for (const socket of [client, upstream]) {
    socket.setNoDelay(true);
    socket.on('error', () => end('reset'));
    socket.on('close', () => end('reset'));
  }
  return { end };
}
