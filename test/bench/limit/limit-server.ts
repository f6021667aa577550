// A bare Fastify server in a process of its own: what a measure is held against. `bytes <file>` answers every GET with
// the file from memory; `rows <file> <database url>` with as many bytes from a row, by gathered queries; `list <file>
// <database url> <project>` with a page of submissions; `create <folder> <database url>` stores submissions.
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyInstance } from 'fastify';
import { createBatchLoader } from '../../../src/server/database/batch-loader.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { serveCreates } from './limit-create.js';
import { serveList } from './limit-list.js';

const CONNECTIONS = 4;
/** Rows that reads are spread over. */
const ROWS = 2_000;

const [kind, path = '', databaseUrl = '', projectId = ''] = process.argv.slice(2);
const app = Fastify();
if (kind === 'bytes') serveBytes(app, readFileSync(path));
else if (kind === 'rows') await serveRows(app, readFileSync(path), databaseUrl);
else if (kind === 'list')
  await serveList(app, openPool(databaseUrl), { answer: readFileSync(path, 'utf8'), projectId });
else await serveCreates(app, openPool(databaseUrl), path);
console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
process.once('SIGINT', () => process.exit(0));

function serveBytes(server: FastifyInstance, bytes: Buffer): void {
  server.get('/*', (_request, reply) => {
    reply.header('content-type', 'application/json').send(bytes);
  });
}

async function serveRows(server: FastifyInstance, bytes: Buffer, url: string): Promise<void> {
  const pool = openPool(url);
  await pool`CREATE TABLE bare (id text PRIMARY KEY, body text NOT NULL)`;
  await pool`INSERT INTO bare SELECT i, ${bytes.toString()} FROM generate_series(1, ${ROWS}) i`;
  const find = createBatchLoader(
    async (ids) => {
      const rows = await pool<{ id: string; body: string }[]>`SELECT * FROM bare WHERE id = ANY(${[...ids]})`;
      return new Map(rows.map(({ id, body }) => [id, body]));
    },
    { maxKeys: 200, maxInFlight: 4 },
  );
  server.get('/*', async (_request, reply) => {
    reply.header('content-type', 'application/json');
    return find(String(Math.ceil(Math.random() * ROWS)));
  });
}

function openPool(url: string): Pool {
  return connectPool({ url, name: 'limit', max: CONNECTIONS, statementTimeoutMs: 10_000 });
}
