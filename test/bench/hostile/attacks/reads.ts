// Reads that cost more than they look: entry bundles of the public log, pages of large submissions.

import { openPool } from '../../services.js';
import type { Attack, Target } from '../attack.js';
import { dropAnswers, openSockets, writeToAll } from '../attack-sockets.js';

const BUNDLE = 256;
const BUNDLES = 100;
const PAGES = 20;
const LARGE = 63 * 1024;

export const attacks: Attack[] = [
  {
    name: `12: ${BUNDLES} full entry bundles, each once`,
    run: (target) => ask(target, bundlePaths(target, BUNDLES)),
  },
  {
    name: `12: ${BUNDLES * 10} full entry bundles, each once`,
    run: (target) => ask(target, bundlePaths(target, BUNDLES * 10)),
  },
  {
    name: `12: one full entry bundle, ${BUNDLES * 10} times`,
    run: (target) => ask(target, Array<string>(BUNDLES * 10).fill(bundlePaths(target, 1)[0] ?? '')),
  },
  {
    name: `12: one full entry bundle, ${BUNDLES * 100} times`,
    run: (target) => ask(target, Array<string>(BUNDLES * 100).fill(bundlePaths(target, 1)[0] ?? '')),
  },
  {
    name: `12: ${BUNDLES} full entry bundles, each once, gzip`,
    run: (target) => ask(target, bundlePaths(target, BUNDLES), 'accept-encoding: gzip\r\n'),
  },
  { name: `14: ${PAGES} pages of 200 submissions with 63 KiB each`, run: readPages },
];

function bundlePaths({ rows }: Target, count: number): string[] {
  const full = Math.min(count, Math.floor(rows / BUNDLE));
  return Array.from(
    { length: full },
    (_, i) => `/verify/log/live/tile/entries/${String(i).padStart(3, '0')}`,
  );
}

/** Asks for everything over one connection and reads the answers. */
async function ask(target: Target, paths: readonly string[], header = ''): Promise<number> {
  const sockets = await openSockets(target, 1);
  dropAnswers(sockets);
  const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: a\r\n${header}\r\n`);
  return writeToAll(sockets, Buffer.from(requests.join('')));
}

async function readPages(target: Target): Promise<number> {
  await addLarge(target);
  const paths = Array<string>(PAGES).fill('/v1/attestations?limit=200');
  return ask(target, paths, `authorization: Bearer ${await target.makeKey()}\r\n`);
}

/** The newest submissions of the key's project; they are in no batch, and what Postgres takes for them is counted. */
async function addLarge({ services, hooks }: Target): Promise<void> {
  const pool = openPool(services.databaseUrl, hooks);
  await pool`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, commitment, dsse_key_id, signature, leaf_hash)
    SELECT s.log_id, s.log_index + i, s.id || '_' || i, ${services.projectId}, now(), s.artifact_sha256, 'purl',
           '{"note":"' || repeat('x', ${LARGE}::int) || '","schema":"purl"}', 1, s.commitment, s.dsse_key_id, s.signature,
           s.leaf_hash
    FROM generate_series(1, 200) i, (
      SELECT s.* FROM submission s JOIN log l ON l.id = s.log_id AND l.environment = 1
      ORDER BY s.log_index DESC LIMIT 1) s`;
}
