/** Several servers behind one URL: new connections go to the one that is the primary, and those to an earlier one end. */
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { NO_PRIMARY } from './database-errors.js';
import { type OpenSocket, watchedSockets } from './watched-socket.js';

/** Finds the primary for the connections of a pool. */
export type Primary = {
  /** Opens sockets to the primary. A socket fails with the code `NO_PRIMARY` if no server is known to be it. */
  sockets(open: OpenSocket): () => Promise<Socket>;
  close(): void;
};

/** One server: `sql` is what it is asked over, `sockets` are those of pools. */
type Server = { host: string; port: number; sql: postgres.Sql; sockets: Set<Socket> };

/** A cluster, and its timeline in hex: each promotion begins a later one. */
type Reign = { cluster: string; timeline: string };

const ASK_TIMEOUT_MS = 3_000;
/** Between two questions to a server, while the primary is known and while it is not. */
const WATCH_MS = 500;
const SEARCH_MS = 100;

const DEFAULT_PORT = 5432;
const URL_PARTS = /^([^/]*\/\/(?:[^/@]*@)?)([^/?]*)(.*)$/;

/** Returns a URL for each server that a Postgres URL names. */
export function urlsOf(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = URL_PARTS.exec(url) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [url];
}

type Shared = { users: number; servers: Server[]; search: Search };

/** By URL: what one pool learns closes the connections of all. */
const inUse = new Map<string, Shared>();

/** Shared by the pools of this process with the same URL, until each has closed it. */
export function openPrimary(url: string): Primary {
  const shared = inUse.get(url) ?? share(url);
  inUse.set(url, shared);
  shared.users++;
  return {
    sockets: (open) => async () => {
      const server = await shared.search.find().catch((error: Error) => error);
      if (server instanceof Error) return failedSocket(server);
      const socket = open({ host: [server.host], port: [server.port], path: false });
      for (const each of server.sockets) if (each.destroyed) server.sockets.delete(each);
      server.sockets.add(socket);
      return socket;
    },
    close: () => {
      if (--shared.users > 0) return;
      inUse.delete(url);
      shared.search.stop();
      for (const { sql } of shared.servers) void sql.end({ timeout: 0 });
    },
  };
}

function share(url: string): Shared {
  const servers = urlsOf(url).map(openServer);
  return { users: 0, servers, search: createSearch(servers) };
}

function openServer(url: string): Server {
  const { hostname: host, port } = new URL(url);
  const sockets = { socket: watchedSockets(ASK_TIMEOUT_MS * 1.5) };
  const sql = postgres(url, {
    ...sockets,
    max: 1,
    fetch_types: false,
    onnotice: () => {},
    max_lifetime: null,
    connect_timeout: ASK_TIMEOUT_MS / 1000,
    backoff: () => SEARCH_MS / 1000,
    connection: { application_name: 'attest primary', statement_timeout: ASK_TIMEOUT_MS },
  });
  return { host, port: Number(port || DEFAULT_PORT), sql, sockets: new Set() };
}

type Search = { find(): Promise<Server>; stop(): void };

/** A caller that waits for the primary, and the servers that have not been asked since. */
type Waiting = { unasked: Set<Server>; resolve(server: Server): void; reject(error: Error): void };

/**
 * Asks every server again and again. One of an earlier timeline than was seen of its cluster is not the primary any more,
 * whatever it says. When another one has become the primary, connections to the others are closed. A caller waits until the
 * primary is found or each server has been asked.
 */
function createSearch(servers: readonly Server[]): Search {
  const stopping = new AbortController();
  let waiting: Waiting[] = [];
  let latest: Reign | undefined;
  let found: Server | undefined;
  const isOver = ({ cluster, timeline }: Reign) => latest?.cluster === cluster && timeline < latest.timeline;
  const take = (server: Server, reign: Reign | undefined) => {
    if (reign === undefined || isOver(reign)) {
      if (found === server) found = undefined;
      return;
    }
    if (found !== server) closeAllBut(servers, server);
    latest = reign;
    found = server;
  };
  const watch = async (server: Server) => {
    while (!stopping.signal.aborted) {
      take(server, await readReign(server));
      for (const { unasked, resolve, reject } of waiting) {
        unasked.delete(server);
        if (found !== undefined) resolve(found);
        else if (unasked.size === 0) reject(noPrimary());
      }
      waiting = waiting.filter(({ unasked }) => found === undefined && unasked.size > 0);
      const pauseMs = found === undefined ? SEARCH_MS : WATCH_MS;
      await delay(pauseMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  };
  for (const server of servers) void watch(server);
  return {
    find: async () =>
      found ??
      new Promise((resolve, reject) => {
        if (stopping.signal.aborted) reject(noPrimary());
        else waiting.push({ unasked: new Set(servers), resolve, reject });
      }),
    stop: () => {
      stopping.abort();
      for (const { reject } of waiting) reject(noPrimary());
    },
  };
}

/** Undefined unless the server answers as a primary. */
async function readReign({ sql }: Server): Promise<Reign | undefined> {
  const rows = await sql<Reign[]>`
    SELECT (SELECT system_identifier::text FROM pg_control_system()) AS cluster,
           left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline
    WHERE NOT pg_is_in_recovery()`.catch(() => []);
  return rows[0];
}

function closeAllBut(servers: readonly Server[], kept: Server): void {
  for (const { sockets } of servers.filter((server) => server !== kept)) {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  }
}

/** The driver reports what a socket fails with, and opens another one for the next statement. */
function failedSocket(error: Error): Socket {
  const socket = new Socket();
  setImmediate(() => socket.destroy(error));
  return socket;
}

function noPrimary(): Error {
  return Object.assign(new Error("none of the database's servers accepts writes"), { code: NO_PRIMARY });
}
