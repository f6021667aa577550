// What a creation must at least do, for the bare server that creates are held against.
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { FastifyInstance } from 'fastify';
import { createRandomSource } from '../../../src/server/core/random.js';
import { byteaArray, type Pool } from '../../../src/server/database/connect.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { makeProject } from '../../../src/server/process/first-keys.js';
import { openLiveLog } from '../prefill.js';
import { benchScript } from '../process.js';
import type { Signed, SignedTask, SignTask } from './limit-thread.js';

const MAX_ROWS = 500;
/** As many as the service has. */
const MAX_IN_FLIGHT = 2;

type Body = { artifact: { sha256: string }; metadata: object };
type Row = Signed & { id: string; atMs: number; digest: string; salt: string; metadata: string };

/**
 * Answers what a creation answers once its row is durable: the service's own table with all its indexes, written by
 * gathered inserts, with a P-256 signature and two SHA-256 off the main thread and an index without gaps. No key, limits,
 * schema, canonical JSON, request id or log; nothing is sealed.
 */
export async function serveCreates(server: FastifyInstance, pool: Pool, dir: string): Promise<void> {
  await migrate(pool);
  const target = { pool, dir, projectId: await makeProject(pool, 'limit') };
  const write = await createWriter(target);
  const sign = createSigner();
  const random = createRandomSource();
  server.post('/*', async (request, reply) => {
    const { artifact, metadata } = request.body as Body;
    const atMs = Date.now();
    const id = `sub_${random.ulid(atMs)}`;
    const unsigned = {
      id,
      atMs,
      digest: artifact.sha256,
      salt: randomBytes(32).toString('hex'),
      metadata: JSON.stringify(metadata),
    };
    const row = { ...unsigned, ...(await sign(unsigned)) };
    const logIndex = await write(row);
    reply.code(201);
    return {
      id,
      leaf_sha256: row.leaf,
      status: 'queued',
      submitted_at: new Date(atMs).toISOString(),
      metadata,
      warnings: [],
      artifact,
      environment: 'live',
      log_index: logIndex,
      metadata_state: 'valid',
      metadata_errors: [],
      metadata_salt: row.salt,
    };
  });
}

/** Hands the submissions of a turn to a thread together. */
function createSigner(): (row: Pick<Row, 'digest' | 'salt' | 'metadata'>) => Promise<Signed> {
  const thread = new Worker(benchScript('limit/limit-thread'));
  type Waiting = { row: Pick<Row, 'digest' | 'salt' | 'metadata'>; resolve: (signed: Signed) => void };
  let queue: Waiting[] = [];
  const underWay = new Map<number, Waiting[]>();
  let batches = 0;
  const post = () => {
    const taken = queue;
    queue = [];
    const batch = ++batches;
    underWay.set(batch, taken);
    thread.postMessage({
      batch,
      digests: taken.map(({ row }) => row.digest),
      salts: taken.map(({ row }) => row.salt),
      metadata: taken.map(({ row }) => row.metadata),
    } satisfies SignTask);
  };
  thread.on('message', ({ batch, signed }: SignedTask) => {
    for (const [n, { resolve }] of (underWay.get(batch) ?? []).entries()) resolve(signed[n]!);
    underWay.delete(batch);
  });
  return (row) =>
    new Promise((resolve) => {
      if (queue.length === 0) setImmediate(post);
      queue.push({ row, resolve });
    });
}

/** Gathers rows while inserts are under way; the index is counted here. @returns a row's index once it is durable */
async function createWriter({
  pool,
  dir,
  projectId,
}: {
  pool: Pool;
  dir: string;
  projectId: string;
}): Promise<(row: Row) => Promise<number>> {
  const { logId, keyId } = await openLiveLog({ pool, dir });
  type Waiting = { row: Row; stored: (logIndex: number) => void; failed: (error: unknown) => void };
  const queue: Waiting[] = [];
  let next = 0;
  let inFlight = 0;
  const flush = async (taken: Waiting[]) => {
    inFlight++;
    const first = next;
    next += taken.length;
    const rows = taken.map(({ row }) => row);
    const bytes = (of: (row: Row) => string) =>
      byteaArray(
        pool,
        rows.map((row) => Buffer.from(of(row), 'hex')),
      );
    try {
      await pool`
        INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                                metadata_state, salt, commitment, dsse_key_id, signature, leaf_hash)
        SELECT ${logId}, ${first}::bigint + n - 1, id, ${projectId}, to_timestamp(at_ms / 1000.0), artifact, 'purl', metadata,
               1, salt, commitment, ${keyId}, signature, leaf
        FROM unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ atMs }) => atMs)}::bigint[],
                    ${bytes(({ digest }) => digest)}, ${rows.map(({ metadata }) => metadata)}::text[],
                    ${bytes(({ salt }) => salt)}, ${bytes(({ commitment }) => commitment)},
                    ${bytes(({ signature }) => signature)}, ${bytes(({ leaf }) => leaf)})
             WITH ORDINALITY r (id, at_ms, artifact, metadata, salt, commitment, signature, leaf, n)`;
      for (const [n, { stored }] of taken.entries()) stored(first + n);
    } catch (error) {
      for (const { failed } of taken) failed(error);
    }
    inFlight--;
    schedule();
  };
  let scheduled = false;
  const schedule = () => {
    if (scheduled || queue.length === 0) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      while (queue.length > 0 && inFlight < MAX_IN_FLIGHT) void flush(queue.splice(0, MAX_ROWS));
    });
  };
  return (row) =>
    new Promise((stored, failed) => {
      queue.push({ row, stored, failed });
      schedule();
    });
}
