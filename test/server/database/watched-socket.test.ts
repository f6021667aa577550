/** Connections over watched sockets: over TLS, and closed if the server is silent. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { isConnectionLost } from '../../../src/server/database/database-errors.js';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

const databaseUrl = new URL(await testDatabase(t, { empty: true }));

function open(t: Test, url: string): Pool {
  const pool = connectPool({ url, name: 'test', max: 1, statementTimeoutMs: 300 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return pool;
}

/** A TLS proxy of the database, as Postgres with a certificate. Forwards nothing while `silent`. */
async function startTlsFront(t: Test) {
  const { tls } = await makeServerTls(t);
  const front = { silent: false, port: 0 };
  const server = createServer((client) => {
    // SSLRequest, to which one byte is the answer.
    client.once('data', () => {
      client.write('S');
      const secure = new TLSSocket(client, { isServer: true, ...tls });
      const upstream = connect(Number(databaseUrl.port), databaseUrl.hostname);
      secure.on('data', (sent) => front.silent || upstream.write(sent));
      upstream.on('data', (answer) => secure.write(answer));
      for (const socket of [secure, upstream]) {
        socket.on('error', () => {});
        socket.on('close', () => [secure, upstream].forEach((each) => void each.destroy()));
      }
    });
  }).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  front.port = (server.address() as AddressInfo).port;
  return front;
}

t.test('over TLS a connection to a silent server is closed, and opened again later', async (t) => {
  const front = await startTlsFront(t);
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(front.port);
  const pool = open(t, `${url.href}?sslmode=require`);
  t.same(await pool`SELECT 1 AS one`, [{ one: 1 }]);
  front.silent = true;
  const error = await pool`SELECT 2`.catch((failed: unknown) => failed);
  t.ok(isConnectionLost(error), String(error));
  front.silent = false;
  await until('it is back', () => pool`SELECT 3`.catch(() => undefined));
});

t.test('a connection to a silent server is closed, however many statements are sent', async (t) => {
  const front = await startTlsFront(t);
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(front.port);
  const pool = open(t, `${url.href}?sslmode=require`);
  await pool`SELECT 1`;
  front.silent = true;
  let asked = 0;
  const asking = setInterval(() => {
    asked++;
    pool`SELECT 1`.catch(() => {});
  }, 50);
  t.teardown(() => clearInterval(asking));
  t.ok(isConnectionLost(await pool`SELECT 2`.catch((failed: unknown) => failed)));
  // The driver sends a hundred statements ahead; from then on nothing would be written any more.
  t.ok(asked < 100, `given up after ${asked} more statements`);
});

t.test('a server that never answers is given up, and the error names its address', async (t) => {
  const server = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const pool = open(t, `postgres://user:password@127.0.0.1:${port}/attest`);
  await t.rejects(pool`SELECT 1`, { message: `write CONNECT_TIMEOUT 127.0.0.1:${port}` });
});
