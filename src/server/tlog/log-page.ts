import { encodeVerifierKey, noteKey } from '../../proof/log/note.js';
import { environmentName } from '../../protocol/environment.js';
import type { LogCache } from '../logs/log-cache.js';
import type { Register } from '../pipeline/register/register.js';
import { logPath } from '../rpc/trust-roots.js';
import type { Pool } from '../store/database/connect.js';
import { type BatchRow, findNewestPublishedBatch } from '../store/log/batches.js';
import { readLogSize } from '../store/log/leaves.js';
import type { Log } from '../store/log/logs.js';

/** What the page of a log is made from. */
export type LogPageDeps = {
  pool: Pool;
  logCache: LogCache;
  register: Pick<Register, 'read'>;
  /** The mirror's address as the world sees it. */
  verifyUrl: () => string;
  /** Monotonic milliseconds. */
  monotonicMs: () => number;
};

const TTL_MS = 5_000;

/**
 * Makes the reader of a log's own page, a JSON document: where the log stands and, of one that was frozen or closed, when
 * and why, what took its place, and what it holds for good. Read at most every five seconds, however many ask.
 */
export function createLogPageReader(deps: LogPageDeps): (log: Log) => Promise<string> {
  const pages = new Map<number, { page: Promise<string>; untilMs: number }>();
  return (log) => {
    const known = pages.get(log.id);
    if (known !== undefined && deps.monotonicMs() < known.untilMs) return known.page;
    const page = readPage(deps, log).then((read) => JSON.stringify(read));
    pages.set(log.id, { page, untilMs: deps.monotonicMs() + TTL_MS });
    page.catch(() => pages.delete(log.id));
    return page;
  };
}

async function readPage({ pool, logCache, register, verifyUrl }: LogPageDeps, log: Log) {
  const published = await findNewestPublishedBatch(pool, log.id);
  const state = log.closedAt !== null ? 'closed' : log.frozenAt !== null ? 'frozen' : 'open';
  const logs = logCache.allLogs();
  const next = logs.find(
    ({ environment, epoch }) => environment === log.environment && epoch === log.epoch + 1,
  );
  const size = published?.treeSize ?? 0;
  return {
    origin: log.origin,
    environment: environmentName(log.environment),
    epoch: log.epoch,
    verifier_key: encodeVerifierKey(noteKey(log.origin, log.publicKey)),
    state,
    created_at: log.createdAt.toISOString(),
    ...checkpointOf(published),
    ...(log.frozenAt !== null && {
      frozen_at: log.frozenAt.toISOString(),
      frozen_reason: log.frozenReason,
      // Taken and never published: they are in no checkpoint, and their submitters are to submit them again.
      stranded: (await readLogSize(pool, log.id)) - size,
      ...(await lostCheckpoint(register, log, published)),
    }),
    ...(log.closedAt !== null && { closed_at: log.closedAt.toISOString() }),
    ...(next && { successor: { origin: next.origin, url: `${verifyUrl()}/log/${logPath(next)}` } }),
  };
}

function checkpointOf(published: BatchRow | undefined) {
  if (published === undefined) return { size: 0 };
  return { size: published.treeSize, root_hash: hex(published.rootHash) };
}

/** A checkpoint that was published, and whose entries this database does not have. */
async function lostCheckpoint(register: LogPageDeps['register'], log: Log, published: BatchRow | undefined) {
  const entry = await register.read(log.origin).catch(() => undefined);
  if (entry === undefined || entry.size < (published?.treeSize ?? 0)) return {};
  const lost = { size: entry.size, root_hash: hex(entry.rootHash) };
  return published?.treeSize === lost.size && hex(published.rootHash) === lost.root_hash
    ? {}
    : { lost_checkpoint: lost };
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
