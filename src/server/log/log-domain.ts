import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readOptionalFile } from '../core/files/read-optional-file.js';
import { writeFileAtomic } from '../core/files/write-file-atomic.js';
import type { Logger } from '../core/logger.js';
import type { Pool } from '../database/connect.js';
import { type Log, listLogs, logDomain as originDomain } from './store/logs.js';

/** The file in the data directory that holds the generated domain of `attest up`. */
const FILE = 'log-domain';
/** `internal` is the top-level domain that ICANN reserves for names that are not public. */
const SUFFIX = 'attest.internal';
const LABEL_BYTES = 10;

const NO_DOMAIN =
  'LOG_DOMAIN is not set, and the database has no log yet: set it, for every process, to a host name that no other ' +
  'installation has, such as log.example.com; witnesses know the logs live.<it> and test.<it> by that alone, and it ' +
  'cannot be changed later';

/**
 * Returns the domain of the service's log origins: the setting, else the domain of the logs in the database, with a
 * warning. Throws if there is neither.
 */
export async function getLogDomain(pool: Pool, log: Logger, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined) return wanted;
  const known = domainOfLogs(await listLogs(pool));
  if (known === undefined) throw new Error(NO_DOMAIN);
  log.warn(`LOG_DOMAIN is not set: using that of the logs in the database; set it to ${known}`);
  return known;
}

function domainOfLogs(logs: readonly Log[]): string | undefined {
  const [first] = logs;
  return first && originDomain(first);
}

/**
 * Returns the domain of the log origins of `attest up`: the setting, else the domain of the logs in the database, else a
 * random one, generated once. It is unique to the installation, since witnesses identify a log by its origin alone.
 */
export async function openLogDomain(
  pool: Pool,
  { logDomain, dataDir }: { logDomain: string | undefined; dataDir: string },
): Promise<{ logDomain: string; isNew: boolean }> {
  const path = join(dataDir, FILE);
  const known = logDomain ?? domainOfLogs(await listLogs(pool)) ?? (await readOptionalFile(path))?.trim();
  if (known !== undefined && known !== '') return { logDomain: known, isNew: false };
  const made = `${randomBytes(LABEL_BYTES).toString('hex')}.${SUFFIX}`;
  await writeFileAtomic(path, `${made}\n`);
  return { logDomain: made, isNew: true };
}
