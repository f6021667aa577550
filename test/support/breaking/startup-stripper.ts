/**
 * A proxy before Postgres that passes on user and database alone of what a client asks for when it connects: as PgBouncer
 * in transaction mode does with `ignore_startup_parameters`.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

const KEPT = ['user', 'database'];

/** Starts it until the test ends. @returns the URL of the database behind it */
export async function startStartupStripper(test: Test, databaseUrl: string): Promise<string> {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.once('data', (startup) => {
      upstream.write(strip(startup));
      client.pipe(upstream);
    });
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return url.href;
}

/** A StartupMessage: length, version, then names and values that end in NUL, and a NUL. */
function strip(startup: Buffer): Buffer {
  const words = startup
    .subarray(8, startup.readUInt32BE(0) - 1)
    .toString()
    .split('\0');
  const pairs = words.flatMap((name, i) =>
    i % 2 === 0 && KEPT.includes(name) ? [name, words[i + 1] ?? ''] : [],
  );
  const body = Buffer.concat([startup.subarray(4, 8), Buffer.from(`${pairs.join('\0')}\0\0`)]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
