/** Compares a restored backup with the published log. */
import { FormatError } from '../../proof/bytes/format-error.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import type { Trust, TrustedLog } from '../../proof/verify/trust.js';
import type { BackedUpLog, BackupReader } from '../../server/process/backup-reader.js';
import { openSeen, type SeenCheckpoint } from '../audit/checkpoint/seen-checkpoint.js';
import { createPrefixFinder } from '../audit/round/find-prefix.js';
import { fetchCheckpoint, type Net, SourceError, tiledSource } from '../audit/source/log-source.js';

/** The state of a log in a backup. `missing`: published leaves that the backup does not have. */
export type LogReport = {
  readonly origin: string;
  readonly leaves: number;
  readonly batches: number;
  readonly sealedAt: Date | undefined;
  readonly publishedSize: number | undefined;
  readonly missing: number | undefined;
  /** Why the log is damaged or contradicts what is published. */
  readonly problems: readonly string[];
  /** Why it could not be compared. */
  readonly unchecked: string | undefined;
};

type Deps = {
  readonly net: Net;
  readonly backup: BackupReader;
  readonly trust: Trust;
  /** Called with numbers of leaves read. */
  readonly onRead: (leaves: number) => void;
};

/** Verifies one log. Throws if the database cannot be read. */
export async function verifyBackup(deps: Deps, log: BackedUpLog): Promise<LogReport> {
  const { backup, trust, onRead } = deps;
  const trusted = trust.logs.find(({ key }) => key.name === log.origin);
  const published = await readPublished(deps, log, trusted);
  const { seen } = published;
  const within = seen !== undefined && seen.size <= log.leaves ? [seen] : [];
  const derived = await backup.derive(log, within, onRead);
  const problems = [...derived.problems, ...published.problems];
  let { unchecked } = published;
  if (trusted !== undefined && seen !== undefined && seen.size > log.leaves) {
    const found = await comparePrefix(deps, { trusted, seen, log, rootHash: derived.rootHash });
    problems.push(...found.problems);
    unchecked ??= found.unchecked;
  }
  return {
    origin: log.origin,
    leaves: log.leaves,
    batches: derived.batches,
    sealedAt: log.newest?.sealedAt,
    publishedSize: seen?.size,
    missing: seen && Math.max(0, seen.size - log.leaves),
    problems,
    unchecked,
  };
}

type Published = { seen?: SeenCheckpoint; problems: string[]; unchecked?: string | undefined };

async function readPublished(
  { net }: Deps,
  log: BackedUpLog,
  trusted: TrustedLog | undefined,
): Promise<Published> {
  if (trusted === undefined)
    return {
      problems: [],
      unchecked: 'the trust roots do not have it: they are of another service, or older',
    };
  if (!equalBytes(trusted.key.publicKey, log.publicKey))
    return { problems: ['its key is not that of the trust roots: it is of another service'] };
  if (trusted.url === '')
    return { problems: [], unchecked: 'the trust roots do not say where it is published' };
  try {
    const note = await fetchCheckpoint(net, tiledSource('the published log', trusted.url));
    if (note === undefined) {
      if (log.newest === undefined) return { problems: [] };
      return { problems: [], unchecked: `nothing is published at ${trusted.url}` };
    }
    const from = 'the published checkpoint';
    return {
      seen: await openSeen({ note: Buffer.from(note).toString(), from }, { log: trusted, cosigners: [] }),
      problems: [],
    };
  } catch (error) {
    return { problems: [], unchecked: reasonOf(error) };
  }
}

type Shorter = { trusted: TrustedLog; seen: SeenCheckpoint; log: BackedUpLog; rootHash: Uint8Array };

/** Compares a backup that is shorter than the published log with the beginning of that. */
async function comparePrefix(
  { net }: Deps,
  { trusted, seen, log: { leaves }, rootHash }: Shorter,
): Promise<Pick<Published, 'problems' | 'unchecked'>> {
  if (leaves === 0) return { problems: [] };
  try {
    const source = tiledSource('the published log', trusted.url);
    const prefix = await createPrefixFinder(net, [source])(leaves, seen);
    if (prefix === undefined)
      return { problems: [], unchecked: 'the published log does not serve the tiles to compare' };
    if (equalBytes(prefix.rootHash, rootHash)) return { problems: [] };
    return { problems: [`its ${leaves} leaves are not the first ones of the published log`] };
  } catch (error) {
    return { problems: [], unchecked: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof SourceError || error instanceof FormatError) return error.message;
  throw error;
}
