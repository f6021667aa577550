/** One log: every checkpoint ever shown is of this log, and tiles and batches are as its entries say. */
import type { Evidence, Findings, HashedLog } from './check.js';
import { type Checkpoint, readCheckpoint } from './checkpoint.js';

const WIDTH = 256;
const WITNESSED = 2;
/** What a batch may have gone through. */
const HISTORIES = ['2', '3,2', '4,2', '4,3,2'];

/** Reports what does not hold. */
export function checkLog(findings: Findings, { record, observed }: Evidence, log: HashedLog): void {
  const { environment } = log;
  findings.looked('entries hashed', log.entries.length);
  const newest = checkNote(findings, log, log.note, 'newest');
  if (newest !== undefined && newest.size !== log.entries.length)
    findings.wrong('log size', `${environment} shows ${newest.size} and has ${log.entries.length} entries`);
  for (const { note, where } of record.shown.filter((shown) => shown.environment === environment)) {
    findings.looked('checkpoints compared');
    checkNote(findings, log, note, where);
  }
  checkTiles(findings, log);
  checkBatches(findings, observed, log);
}

/**
 * Every checkpoint is the root of the first entries of the one list that is there now. So each is consistent with each
 * other, whichever came first.
 */
function checkNote(findings: Findings, log: HashedLog, note: string, where: string): Checkpoint | undefined {
  try {
    const checkpoint = readCheckpoint(note, log.known);
    if (checkpoint.size > log.tree.size)
      findings.wrong(
        'cut',
        `${log.environment} showed ${checkpoint.size} leaves (${where}), has ${log.tree.size}`,
      );
    else if (!log.tree.root(0, checkpoint.size).equals(checkpoint.root))
      findings.wrong(
        'fork',
        `${log.environment} showed another root of ${checkpoint.size} leaves (${where})`,
      );
    return checkpoint;
  } catch (error) {
    findings.wrong('checkpoint', `a checkpoint of ${log.environment} (${where}) ${(error as Error).message}`);
    return undefined;
  }
}

function checkTiles(findings: Findings, log: HashedLog): void {
  let nodes = log.leaves;
  let below = 1;
  for (let level = 0; nodes.length > 0; level++) {
    for (let index = 0; index * WIDTH < nodes.length; index++) {
      const wanted = Buffer.concat(nodes.slice(index * WIDTH, (index + 1) * WIDTH));
      findings.looked('tiles compared');
      if (!log.tiles.get(`${level}/${index}`)?.equals(wanted))
        findings.wrong('tile', `${log.environment} has another tile ${level}/${index}`);
    }
    below *= WIDTH;
    const full = Math.floor(log.leaves.length / below);
    nodes = Array.from({ length: full }, (_, i) => log.tree.root(i * below, (i + 1) * below));
  }
}

function checkBatches(findings: Findings, { tables }: Evidence['observed'], log: HashedLog): void {
  let end = 0;
  for (const batch of tables.batches.filter(({ environment }) => environment === log.environment)) {
    findings.looked('batches recomputed');
    if (batch.first !== end) findings.wrong('batch', `${batch.id} begins at ${batch.first}, not at ${end}`);
    end = batch.size;
    if (!batch.published) findings.wrong('batch', `${batch.id} is not published`);
    else if (end <= log.tree.size && log.tree.root(0, end).toString('hex') !== batch.root)
      findings.wrong('batch', `${batch.id} has another root than its leaves`);
    checkNote(findings, log, batch.note, batch.id);
    if (batch.status !== WITNESSED || !HISTORIES.includes(batch.statuses.join()))
      findings.wrong('unsettled', `${batch.id} has status ${batch.status} by ${batch.statuses}`);
  }
  if (end !== log.entries.length)
    findings.wrong('batch', `batches of ${log.environment} end at ${end} of ${log.entries.length}`);
}
