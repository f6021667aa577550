import { encodeVerifierKey, noteKey } from '../../proof/log/note.js';
import { environmentName } from '../../protocol/environment.js';
import type { Pool } from '../database/connect.js';
import type { LogCache } from '../log/log-cache.js';
import type { Register } from '../log/register/register.js';
import { type BatchRow, findNewestPublishedBatch } from '../log/store/batches.js';
import { readLogSize } from '../log/store/leaves.js';
import { type Log, logName } from '../log/store/logs.js';
import { mlDsaVerifierKey } from './trust-roots.js';

/** Dependencies of log pages. */
type LogPageDeps = {
  pool: Pool;
  logCache: LogCache;
  register: Pick<Register, 'read'>;
  /** The public address of the verification routes. */
  verifyUrl: () => string;
  /** Monotonic milliseconds. */
  monotonicMs: () => number;
};

const TTL_MS = 5_000;

/**
 * Returns the reader of a log's page, a JSON document: its state and size and, if it was frozen or closed, when, why and
 * which log succeeded it. Pages are cached for five seconds.
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
    ({ environment, lane, epoch }) =>
      environment === log.environment && lane === log.lane && epoch === log.epoch + 1,
  );
  const size = published?.treeSize ?? 0;
  return {
    origin: log.origin,
    environment: environmentName(log.environment),
    epoch: log.epoch,
    verifier_key: encodeVerifierKey(noteKey(log.origin, log.publicKey)),
    ml_dsa_verifier_key: mlDsaVerifierKey(log),
    state,
    created_at: log.createdAt.toISOString(),
    ...checkpointOf(published),
    ...(log.frozenAt !== null && {
      frozen_at: log.frozenAt.toISOString(),
      frozen_reason: log.frozenReason,
      // Entries accepted but never published: no checkpoint covers them, so their submitters must submit them again.
      stranded: (await readLogSize(pool, log.id)) - size,
      ...(await lostCheckpoint(register, log, published)),
    }),
    ...(log.closedAt !== null && { closed_at: log.closedAt.toISOString() }),
    ...(next && { successor: { origin: next.origin, url: `${verifyUrl()}/log/${logName(next)}` } }),
  };
}

function checkpointOf(published: BatchRow | undefined) {
  if (published === undefined) return { size: 0 };
  return { size: published.treeSize, root_hash: hex(published.rootHash) };
}

/** The checkpoint that was published but whose entries this database lacks. Empty if there is none. */
async function lostCheckpoint(register: LogPageDeps['register'], log: Log, published: BatchRow | undefined) {
  const entry = await register.read(log.origin).catch(() => undefined);
  if (entry === undefined || entry.size < (published?.treeSize ?? 0)) return {};
  const lost = { size: entry.size, root_hash: hex(entry.rootHash) };
  return published?.treeSize === lost.size && hex(published.rootHash) === lost.root_hash
    ? {}
    : { lost_checkpoint: lost };
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
