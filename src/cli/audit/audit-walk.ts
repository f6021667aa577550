/** Audits one log: reads its published entries and compares the roots with its checkpoints. */

import { fromUtf8, toBase64 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { type Audit, entryBundles, type ShownCheckpoint, startAudit } from '../../proof/log/audit.js';
import { openCheckpoint, type SignedCheckpoint } from '../../proof/log/checkpoint.js';
import { MAX_NOTE_BYTES } from '../../proof/log/note.js';
import { type TileAddress, tilePath } from '../../proof/log/tile-path.js';
import type { Trust, TrustedLog } from '../../proof/verify/trust.js';
import { UsageError } from '../cli.js';
import { openNotes, type SourcedNote } from './audit-checkpoints.js';
import { type AuditState, resumePoint, toAuditedLog } from './audit-state.js';
import { fetchPublished } from './fetch-published.js';
import { mapConcurrent } from './map-concurrent.js';

/** Result for one log. `size` and `read` count entries, `confirmed` counts checkpoints other than the current one. */
export type Finding = {
  readonly log: TrustedLog;
  /** The signed note that the log serves now, if any. */
  readonly checkpoint?: string;
  readonly size: number;
  readonly read: number;
  readonly confirmed: number;
  readonly problems: readonly string[];
};

/** Trust, the checkpoints to compare with, and the state to resume from, which the audit updates. */
export type AuditOptions = {
  readonly trust: Trust;
  readonly notes: readonly SourcedNote[];
  readonly state: AuditState;
  /** Called once with the number of entries to read; returns the progress callback. */
  readonly startProgress: (entries: number) => (entries: number) => void;
};

/** 256 entries of at most 65,535 bytes, each with a 2-byte length prefix. */
const MAX_ENTRIES_BYTES = 256 * 65_537;
const CONCURRENCY = 8;
const RETRY_DELAYS_MS = [500, 1_000, 2_000, 4_000];

/**
 * Audits one log and returns its violations in the finding. Throws FetchError or UsageError if the log could not be
 * checked.
 */
export async function auditLog(walk: AuditOptions, log: TrustedLog): Promise<Finding> {
  const start = await resumePoint(walk.state, log.key);
  const { size } = start.frontier;
  const nothing: Finding = { log, size, read: 0, confirmed: 0, problems: [] };
  try {
    const now = await fetchCheckpoint(log);
    const shown = await openNotes([...start.notes, ...walk.notes], log.key);
    assertNoneLarger(shown, now?.size ?? 0);
    assertNoneOlder(shown, size);
    if (now === undefined) return nothing;
    const isTrusted = trustedKeys(walk.trust, log);
    const checkpoints = [...shown, { ...now, from: 'the checkpoint it shows now' }];
    const audit = startAudit({ start: start.frontier, checkpoints, isTrustedKey: isTrusted });
    await readEntries(audit, log, now.size, walk.startProgress(now.size - size));
    const { problems, confirmed, frontier } = audit;
    if (problems.length === 0) walk.state.set(log.key.name, toAuditedLog(now.envelope, frontier));
    return {
      log,
      checkpoint: now.envelope,
      size: now.size,
      read: frontier.size - size,
      confirmed: Math.max(0, confirmed - 1),
      problems,
    };
  } catch (error) {
    if (error instanceof FormatError) return { ...nothing, problems: [error.message] };
    throw error;
  }
}

async function fetchCheckpoint({
  url,
  key,
}: TrustedLog): Promise<(SignedCheckpoint & { envelope: string }) | undefined> {
  const options = { what: 'the checkpoint', maxBytes: MAX_NOTE_BYTES, retryDelaysMs: RETRY_DELAYS_MS };
  const bytes = await fetchPublished(`${url}/checkpoint`, options);
  if (bytes === undefined) return undefined;
  const envelope = fromUtf8(bytes);
  return { ...(await openCheckpoint(envelope, key)), envelope };
}

/** Throws FormatError if a signed checkpoint is larger than the log: entries were lost or are withheld. */
function assertNoneLarger(shown: readonly ShownCheckpoint[], size: number): void {
  const ahead = shown.find((checkpoint) => checkpoint.size > size);
  if (ahead === undefined) return;
  throw new FormatError(
    `it shows ${size} entries now, and has signed that there are ${ahead.size} (${ahead.from})`,
  );
}

/** Throws UsageError for a checkpoint before the start, whose root this audit does not compute. */
function assertNoneOlder(
  shown: readonly (ShownCheckpoint & { mayPredateAudit?: boolean })[],
  start: number,
): void {
  const before = shown.find((checkpoint) => checkpoint.size < start && !checkpoint.mayPredateAudit);
  if (before === undefined) return;
  throw new UsageError(
    `the checkpoint of size ${before.size} in ${before.from} is older than the last audit; audit without --state`,
  );
}

function trustedKeys({ dsseKeys }: Trust, { environment }: TrustedLog): (spki: Uint8Array) => boolean {
  const trusted = new Set(
    dsseKeys.filter((key) => key.environment === environment).map(({ spki }) => toBase64(spki)),
  );
  return (spki) => trusted.has(toBase64(spki));
}

async function readEntries(
  audit: Audit,
  log: TrustedLog,
  size: number,
  onRead: (entries: number) => void,
): Promise<void> {
  const read = async (address: TileAddress) => fetchEntries(log, address).catch((error: Error) => error);
  const addresses = entryBundles(audit.frontier.size, size);
  for await (const [address, bundle] of mapConcurrent(
    addresses,
    CONCURRENCY,
    async (at) => [at, await read(at)] as const,
  )) {
    if (bundle instanceof Error) throw bundle;
    const before = audit.frontier.size;
    audit.add(bundle, address);
    onRead(audit.frontier.size - before);
  }
}

async function fetchEntries({ url }: TrustedLog, address: TileAddress): Promise<Uint8Array> {
  const path = tilePath(address);
  const options = { what: 'entries', maxBytes: MAX_ENTRIES_BYTES, retryDelaysMs: RETRY_DELAYS_MS };
  const bundle = await fetchPublished(`${url}/${path}`, options);
  if (bundle === undefined) throw new FormatError(`it has no ${path}, which its checkpoint covers`);
  return bundle;
}
