// A bare Fastify server in a process of its own: what a measure is held against. `bytes <file>` answers every GET with
// the file from memory; `rows <file> <database url>` with as many bytes from a row, by gathered queries; `create
// <database url>` parses JSON and stores rows of ROW_BYTES by gathered inserts.
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyInstance } from 'fastify';
import { createBatchLoader } from '../../src/server/store/database/batch-loader.js';
import { byteaArray, connectPool, type Pool } from '../../src/server/store/database/connect.js';

/** About what a submission takes. */
const ROW_BYTES = 500;
const MAX_ROWS = 500;
const MAX_IN_FLIGHT = 2;
const CONNECTIONS = 4;
/** Rows that reads are spread over. */
const ROWS = 2_000;

const [kind, argument = '', databaseUrl = ''] = process.argv.slice(2);
const app = Fastify();
if (kind === 'bytes') serveBytes(app, readFileSync(argument));
else if (kind === 'rows') await serveRows(app, readFileSync(argument), databaseUrl);
else await serveCreates(app, argument);
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

type Body = { artifact: { sha256: string }; metadata: object };

/** Answers what a creation answers, once a row with the request is durable. */
async function serveCreates(server: FastifyInstance, url: string): Promise<void> {
  const write = await createWriter(url);
  server.post('/*', async ({ body }, reply) => {
    const { artifact, metadata } = body as Body;
    const row = Buffer.alloc(ROW_BYTES, 0x20);
    row.write(JSON.stringify(body));
    await write(row);
    reply.code(201);
    return {
      id: 'sub_01M7YA76FN30XGEBSXRYHPXKK4',
      leaf_sha256: artifact.sha256,
      status: 'queued',
      submitted_at: '2026-01-02T03:04:05.678Z',
      metadata,
      warnings: [],
      artifact,
      environment: 'live',
      log_index: 1_000_000,
      metadata_state: 'valid',
      metadata_errors: [],
      metadata_salt: artifact.sha256,
    };
  });
}

type Waiting = { row: Buffer; stored: () => void; failed: (error: unknown) => void };

/** Gathers rows while inserts are under way. */
async function createWriter(url: string): Promise<(row: Buffer) => Promise<void>> {
  const pool = openPool(url);
  await pool`CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea NOT NULL)`;
  const queue: Waiting[] = [];
  let inFlight = 0;
  let scheduled = false;
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      while (queue.length > 0 && inFlight < MAX_IN_FLIGHT) void flush(queue.splice(0, MAX_ROWS));
    });
  };
  const flush = async (taken: Waiting[]) => {
    inFlight++;
    const rows = taken.map(({ row }) => row);
    try {
      await pool`INSERT INTO bare (payload) SELECT * FROM unnest(${byteaArray(pool, rows)})`;
      for (const { stored } of taken) stored();
    } catch (error) {
      for (const { failed } of taken) failed(error);
    }
    inFlight--;
    schedule();
  };
  return (row) =>
    new Promise((stored, failed) => {
      queue.push({ row, stored, failed });
      schedule();
    });
}
