/**
 * What must hold of one log's tables: leaves, batches, transitions, tiles. Recomputed from the leaves, with pauses in which
 * the links of a test pass on what its servers say to each other.
 */
import { setImmediate as pause } from 'node:timers/promises';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import type { RegisterConfig } from '../../../src/config/checkpoint-register.js';
import { toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { openCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { leafHash, rootOfLeafHashes } from '../../../src/proof/log/merkle.js';
import { noteKey } from '../../../src/proof/log/note.js';
import { leafRecord, rebuildLeaf } from '../../../src/proof/statement/leaf.js';
import { readSigned } from '../../../src/server/attestations/bundles/bundles.js';
import {
  createStatementReader,
  type ReadStatement,
} from '../../../src/server/attestations/statements/statement-store.js';
import {
  findSubmissions,
  type SubmissionRow,
} from '../../../src/server/attestations/submissions/submissions.js';
import type { Pool } from '../../../src/server/database/connect.js';
import type { LogCache } from '../../../src/server/log/log-cache.js';
import type { RegisterEntry } from '../../../src/server/log/register/register.js';
import { type BatchRow, batchColumns } from '../../../src/server/log/store/batches.js';
import type { Log } from '../../../src/server/log/store/logs.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { readEntry } from '../breaking/register.js';

/** Leaves that are rebuilt between two pauses. */
const PAUSE_LEAVES = 100;

/** A log as it was read, and all that is wrong with it. */
export type LogFindings = { leaves: SubmissionRow[]; batches: BatchRow[]; problems: string[] };

export type LogCheck = {
  pool: Pool;
  logCache: LogCache;
  register: RegisterConfig;
  /** Whether every leaf must be sealed and published. */
  sealed: boolean;
};

/** All of the log, in order. */
async function readLeaves(pool: Pool, { id }: Log): Promise<SubmissionRow[]> {
  const rows = await pool<{ id: string }[]>`SELECT id FROM submission WHERE log_id = ${id}`;
  const leaves = await findSubmissions(
    pool,
    rows.map((row) => row.id),
  );
  return leaves.sort((a, b) => a.logIndex - b.logIndex);
}

export async function inspectLog(check: LogCheck, log: Log): Promise<LogFindings> {
  const { pool } = check;
  const leaves = await readLeaves(pool, log);
  const batches = await readBatches(pool, log);
  const problems = [
    await findLeafProblems(check, log, leaves),
    await findBatchProblems(check, log, leaves, batches),
    await findRegisterProblems(check, log, batches),
    await findContentProblems(pool, log, batches),
    await findTransitionProblems(pool, log, batches),
    await findTileProblems(pool, log, leaves, batches),
  ];
  return { leaves, batches, problems: problems.flat() };
}

/** Indexes without gap or duplicate; each leaf is the hash of the statement, rebuilt from its row or stored. */
async function findLeafProblems(
  { pool, logCache }: LogCheck,
  log: Log,
  leaves: readonly SubmissionRow[],
): Promise<string[]> {
  const problems: string[] = [];
  const readStatement = createStatementReader(pool);
  for (const [i, leaf] of leaves.entries()) {
    if (i % PAUSE_LEAVES === 0) await pause();
    if (leaf.logIndex !== i) problems.push(`${log.origin} has index ${leaf.logIndex} at place ${i}`);
    const { spki } = await logCache.getDsseKey(leaf.dsseKeyId);
    const hash = await leafHashOf(readStatement, leaf, log.environment, spki);
    if (Buffer.compare(hash, leaf.leafHash) !== 0)
      problems.push(`${leaf.id} has another leaf than its row makes`);
  }
  return problems;
}

async function leafHashOf(
  readStatement: ReadStatement,
  leaf: SubmissionRow,
  environment: number,
  publicKey: Uint8Array,
): Promise<Uint8Array> {
  const { signature } = leaf;
  const statement = await readSigned(readStatement, leaf, environment);
  if (typeof statement !== 'string')
    return leafHash(leafRecord({ digest: statement.digest, signature, publicKey }));
  return rebuildLeaf(utf8(statement), signature, publicKey).hash;
}

/** Batches partition the log, each with the root of all leaves up to its end, signed. */
async function findBatchProblems(
  { sealed }: LogCheck,
  log: Log,
  leaves: readonly SubmissionRow[],
  batches: readonly BatchRow[],
): Promise<string[]> {
  const problems: string[] = [];
  const key = noteKey(log.origin, log.publicKey);
  let end = 0;
  for (const batch of batches) {
    await pause();
    if (batch.firstIndex !== end) problems.push(`${batch.id} begins at ${batch.firstIndex}, not at ${end}`);
    end = batch.treeSize;
    const root = rootOfLeafHashes(leaves.slice(0, end).map((leaf) => leaf.leafHash));
    if (Buffer.compare(root, batch.rootHash) !== 0)
      problems.push(`${batch.id} has another root than its leaves`);
    const checkpoint = await openCheckpoint(batch.note, key);
    if (checkpoint.size !== end || Buffer.compare(checkpoint.rootHash, root) !== 0)
      problems.push(`${batch.id} is signed as something else`);
    if (sealed && batch.registeredAt === null) problems.push(`${batch.id} is not published`);
  }
  if (sealed && end !== leaves.length)
    problems.push(`${log.origin}: ${end} of ${leaves.length} leaves are sealed`);
  return problems;
}

/** The register has the newest published checkpoint. */
async function findRegisterProblems(
  { register }: LogCheck,
  log: Log,
  batches: readonly BatchRow[],
): Promise<string[]> {
  const published = batches.filter((batch) => batch.registeredAt !== null).at(-1);
  if (published === undefined) return [];
  const wanted = `${published.treeSize} ${toHex(published.rootHash)}`;
  const entry =
    typeof register === 'string'
      ? readEntry(register, log.origin)
      : textOf(await (await openRegister(register)).read(log.origin));
  return entry === wanted ? [] : [`the register has ${entry}, published is ${wanted}`];
}

const textOf = (entry: RegisterEntry | undefined) => entry && `${entry.size} ${toHex(entry.rootHash)}`;

async function findContentProblems(pool: Pool, log: Log, batches: readonly BatchRow[]): Promise<string[]> {
  const contents = await pool<{ treeSize: number; submissions: number }[]>`
    SELECT tree_size AS "treeSize", sum(submissions)::bigint AS submissions FROM batch_content
    WHERE log_id = ${log.id} GROUP BY tree_size`;
  return batches.flatMap((batch) => {
    const counted = contents.find(({ treeSize }) => treeSize === batch.treeSize)?.submissions;
    return counted === batch.treeSize - batch.firstIndex ? [] : [`${batch.id} counts ${counted} submissions`];
  });
}

/** What a batch can have gone through to its status. The table's key keeps any transition from being there twice. */
const HISTORIES: ReadonlyMap<number, readonly string[]> = new Map([
  [BatchStatus.SEALED, ['']],
  [BatchStatus.WITNESSED, ['2', '3,2', '4,2']],
  [BatchStatus.PARTIAL, ['3']],
  [BatchStatus.FAILED, ['4']],
]);

async function findTransitionProblems(pool: Pool, log: Log, batches: readonly BatchRow[]): Promise<string[]> {
  const rows = await pool<{ treeSize: number; status: number }[]>`
    SELECT tree_size AS "treeSize", status FROM batch_transition WHERE log_id = ${log.id} ORDER BY tree_size, at`;
  return batches.flatMap(({ id, treeSize, status, witnessedAt }) => {
    const history = rows.filter((row) => row.treeSize === treeSize).map((row) => row.status);
    const problems: string[] = [];
    if (!HISTORIES.get(status)?.includes(history.join()))
      problems.push(`${id} became ${status} by ${history}`);
    if ((witnessedAt !== null) !== (status === BatchStatus.WITNESSED))
      problems.push(`${id} has status ${status} and witnessed_at ${witnessedAt?.toISOString()}`);
    return problems;
  });
}

/** The tiles are those of the newest batch's tree, and no others. */
async function findTileProblems(
  pool: Pool,
  log: Log,
  leaves: readonly SubmissionRow[],
  batches: readonly BatchRow[],
): Promise<string[]> {
  const stored = await pool<{ place: string; hashes: Uint8Array }[]>`
    SELECT level || '/' || tile_index AS place, hashes FROM tile WHERE log_id = ${log.id}`;
  const tiles = new Map(stored.map(({ place, hashes }) => [place, toHex(hashes)]));
  const wanted = tilesOf(leaves.slice(0, batches.at(-1)?.treeSize ?? 0).map((leaf) => leaf.leafHash));
  const wrong = [...wanted].filter(([place, hashes]) => tiles.get(place) !== hashes).map(([place]) => place);
  const extra = [...tiles.keys()].filter((place) => !wanted.has(place));
  return [...wrong, ...extra].map((place) => `${log.origin} has a wrong tile ${place}`);
}

const TILE_WIDTH = 256;

/** Hex of the tiles of a tree, by `<level>/<index>`. */
function tilesOf(leafHashes: readonly Uint8Array[]): Map<string, string> {
  const tiles = new Map<string, string>();
  let row = leafHashes;
  for (let level = 0; row.length > 0; level++) {
    const above: Uint8Array[] = [];
    for (let index = 0; index * TILE_WIDTH < row.length; index++) {
      const hashes = row.slice(index * TILE_WIDTH, (index + 1) * TILE_WIDTH);
      tiles.set(`${level}/${index}`, toHex(Buffer.concat(hashes)));
      if (hashes.length === TILE_WIDTH) above.push(rootOfLeafHashes(hashes));
    }
    row = above;
  }
  return tiles;
}

async function readBatches(pool: Pool, log: Log): Promise<BatchRow[]> {
  return pool<
    BatchRow[]
  >`SELECT ${batchColumns(pool)} FROM batch b WHERE b.log_id = ${log.id} ORDER BY b.tree_size`;
}
