/** What is there after a campaign: the public log as anybody can fetch it, and the tables as plain SQL shows them. */
import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import type { EnvironmentName } from '../../../src/protocol/environment.js';
import { ENVIRONMENTS } from '../clients/watch.js';
import type { KnownLog } from './checkpoint.js';

export type SeenLog = {
  environment: EnvironmentName;
  /** From the trust roots as they were before the first fault. */
  known: KnownLog;
  note: string;
  entries: Buffer[];
  /** By `<level>/<index>`: the hashes, as many as the tree has there. */
  tiles: Map<string, Buffer>;
};

export type SeenSubmission = {
  id: string;
  environment: EnvironmentName;
  index: number;
  project: string;
  artifact: string;
  leaf: string;
  metadata: string | null;
  attested: string | null;
  salt: string | null;
};

/** `statuses` are those that the batch has gone through, as numbers of the API's enum, in order of time. */
export type SeenBatch = {
  id: string;
  environment: EnvironmentName;
  first: number;
  size: number;
  root: string;
  note: string;
  published: boolean;
  status: number;
  statuses: number[];
};

/** The tables, as far as they are checked. */
export type SeenTables = {
  submissions: SeenSubmission[];
  batches: SeenBatch[];
  /** Idempotency keys and the ids of what they made. */
  keys: { key: string; resource: string }[];
  /** Project of each owner, whose key is the owner's. */
  projects: Record<string, string>;
};

export type Observed = { logs: SeenLog[]; tables: SeenTables };

const WIDTH = 256;

/** Fetches a log's newest checkpoint, all entries up to it, and all tiles over them. */
async function fetchLog(api: string, environment: EnvironmentName, known: KnownLog): Promise<SeenLog> {
  const base = `${api}/verify/log/${environment}`;
  const note = (await fetchBytes(`${base}/checkpoint`)).toString();
  const size = Number(note.split('\n')[1]);
  const entries: Buffer[] = [];
  for (const { path } of tilesOf(size, 'entries'))
    entries.push(...splitEntries(await fetchBytes(`${base}/${path}`)));
  const tiles = new Map<string, Buffer>();
  for (let level = 0, width = size; width > 0; level++, width = Math.floor(width / WIDTH))
    for (const { path, index } of tilesOf(width, level))
      tiles.set(`${level}/${index}`, await fetchBytes(`${base}/${path}`));
  return { environment, known, note, entries, tiles };
}

/** Paths of C2SP tlog-tiles for that many hashes or entries at a level. */
function tilesOf(count: number, level: number | 'entries'): { path: string; index: number }[] {
  return Array.from({ length: Math.ceil(count / WIDTH) }, (_, index) => {
    const width = Math.min(WIDTH, count - index * WIDTH);
    const digits = String(index).padStart(3, '0');
    const groups = digits
      .padStart(Math.ceil(digits.length / 3) * 3, '0')
      .match(/\d{3}/g)!
      .map((group, i, all) => (i === all.length - 1 ? group : `x${group}`));
    const partial = width === WIDTH ? '' : `.p/${width}`;
    return { path: `tile/${level}/${groups.join('/')}${partial}`, index };
  });
}

function splitEntries(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = [];
  for (let at = 0; at < bundle.length; ) {
    const end = at + 2 + bundle.readUInt16BE(at);
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  return entries;
}

const FETCH_ATTEMPTS = 5;

/** Nothing is broken any more when this is used, but a connection that was may be found out only now. */
async function fetchBytes(url: string): Promise<Buffer> {
  for (let attempt = 1; ; attempt++) {
    const response = await tryFetch(url);
    if (Buffer.isBuffer(response)) return response;
    if (!response.isTransient || attempt === FETCH_ATTEMPTS) throw new Error(`${url}: ${response.reason}`);
    await delay(1_000);
  }
}

/** A lost connection and a 503 are transient: a pooled connection may have been idle too long, or a server just restarted. */
async function tryFetch(url: string): Promise<Buffer | { reason: string; isTransient: boolean }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(60_000) });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status === 200) return bytes;
    return { reason: `answers ${response.status}`, isTransient: response.status === 503 };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: Error };
    return { reason: `${message}: ${cause?.message ?? 'no cause'}`, isTransient: true };
  }
}

/** What was pinned before the first fault. */
export type Roots = {
  transparency_logs: { environment: EnvironmentName; origin: string; public_key_pem: string }[];
  dsse_signing_keys: { environment: EnvironmentName; public_key_pem: string }[];
  timestamp_authorities: { name: string; cert_chain_pem: string[] }[];
};

/** The trust roots, as the public mirror shows them. */
export async function fetchRoots(api: string): Promise<Roots> {
  return JSON.parse((await fetchBytes(`${api}/verify/trust_roots.json`)).toString()) as Roots;
}

/** The log of an environment as pinned roots name it. */
export function knownLog(roots: Roots, environment: EnvironmentName): KnownLog {
  const log = roots.transparency_logs.find((each) => each.environment === environment);
  if (log === undefined) throw new Error(`the trust roots have no log ${environment}`);
  return { origin: log.origin, publicKeyPem: log.public_key_pem };
}

/** Both logs. */
export async function fetchLogs(api: string, roots: Roots): Promise<SeenLog[]> {
  return Promise.all(
    ENVIRONMENTS.map((environment) => fetchLog(api, environment, knownLog(roots, environment))),
  );
}

/** Reads the tables. @param projects by owner */
export async function readTables(sql: postgres.Sql, projects: Record<string, string>): Promise<SeenTables> {
  const environment = sql`CASE l.environment WHEN 1 THEN 'live' ELSE 'test' END AS environment`;
  const submissions = await sql<SeenSubmission[]>`
    SELECT s.id, ${environment}, s.log_index::float8 AS index, s.project_id AS project,
           encode(s.artifact_sha256, 'hex') AS artifact, encode(s.leaf_hash, 'hex') AS leaf,
           s.metadata, s.attested_metadata AS attested, encode(s.salt, 'hex') AS salt
    FROM named_submission s JOIN log l ON l.id = s.log_id ORDER BY s.log_id, s.log_index`;
  const batches = await sql<SeenBatch[]>`
    SELECT b.id, ${environment}, b.first_index::float8 AS first, b.tree_size::float8 AS size,
           encode(b.root_hash, 'hex') AS root, b.note, b.registered_at IS NOT NULL AS published, b.status,
           ARRAY(SELECT t.status FROM batch_transition t
                 WHERE t.log_id = b.log_id AND t.tree_size = b.tree_size ORDER BY t.at) AS statuses
    FROM batch b JOIN log l ON l.id = b.log_id ORDER BY b.log_id, b.tree_size`;
  const keys = await sql<{ key: string; resource: string }[]>`
    SELECT key, resource_id AS resource FROM idempotency_key`;
  return { submissions: [...submissions], batches: [...batches], keys: [...keys], projects };
}
