/** Reads the new entries of a log, and explains roots that do not follow from them. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { type Audit, type AuditedTree, contradiction, startAudit } from '../../../proof/log/audit.js';
import { splitView } from '../alarm/alarm.js';
import type { SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import { walkEntries } from './audit-walk.js';
import { type RoundState, report } from './round-state.js';

const MAX_SHOWN_PROBLEMS = 5;

/** Reads the entries up to the log's checkpoint and reports what is wrong with them, or with a checkpoint. */
export async function readLog(
  state: RoundState,
  main: SeenCheckpoint,
  start: AuditedTree,
  others: readonly SeenCheckpoint[],
): Promise<Audit<SeenCheckpoint>> {
  const { deps, watched, memory } = state;
  const { expected, isTrustedKey } = watched;
  const known = [...(memory.tip ? [memory.tip.checkpoint] : []), ...memory.notes];
  const checkpoints = [...known, ...others, main].filter(({ size }) => size <= main.size);
  const audit = startAudit({ start, checkpoints, isTrustedKey, expected });
  const onEntries = deps.startProgress(main.size - start.size);
  const onRead = (entries: number, tree: AuditedTree | undefined) => {
    onEntries(entries);
    return tree && deps.onRead(tree, main);
  };
  const broken = await walkEntries({ net: deps.net, source: watched.main, onRead }, audit, main.size).catch(
    (error: unknown) => {
      if (error instanceof FormatError) return error.message;
      throw error;
    },
  );
  const isMainRight = audit.confirmed.includes(main) && broken === undefined;
  if (!isMainRight && (await isRewritten(state, main))) return audit;
  if (broken !== undefined) report(state, broken);
  if (audit.problems.length > 0) report(state, summarize(audit.problems));
  for (const { checkpoint, derived } of audit.contradicted) {
    if (isMainRight && others.includes(checkpoint)) await reportOdd(state, main, checkpoint, derived);
    else reportRoot(state, main, checkpoint, derived);
  }
  return audit;
}

/** One alarm for all: what is wrong with one entry is often wrong with the others. */
function summarize(problems: readonly string[]): string {
  const more = problems.length - MAX_SHOWN_PROBLEMS;
  const shown = problems.slice(0, MAX_SHOWN_PROBLEMS).join('; ');
  return more > 0 ? `${shown}; and ${more} more` : shown;
}

/** Reports that the log's checkpoint contradicts the last verified one, if its tiles prove it: history was rewritten. */
async function isRewritten(state: RoundState, main: SeenCheckpoint): Promise<boolean> {
  const tip = state.memory.tip?.checkpoint;
  const prefix = tip && (await state.findPrefix(tip.size, main));
  if (!tip || !prefix || equalBytes(prefix.rootHash, tip.rootHash)) return false;
  state.isSound = false;
  state.alarms.push(splitView(tip, main, { odd: main, prefix }));
  return true;
}

/** Reports another source's checkpoint that is not one of the log, which is intact. */
async function reportOdd(
  state: RoundState,
  main: SeenCheckpoint,
  odd: SeenCheckpoint,
  derived: Uint8Array,
): Promise<void> {
  const prefix = await state.findPrefix(odd.size, main);
  if (prefix && equalBytes(prefix.rootHash, derived))
    state.alarms.push(splitView(odd, main, { odd, prefix }));
  else report(state, contradiction(odd, derived), { evidence: { first: odd, second: main } });
}

/** Reports a root that does not follow from the entries. */
function reportRoot(
  state: RoundState,
  main: SeenCheckpoint,
  checkpoint: SeenCheckpoint,
  derived: Uint8Array,
): void {
  const first = checkpoint === main ? state.memory.tip?.checkpoint : checkpoint;
  report(state, contradiction(checkpoint, derived), first && { evidence: { first, second: main } });
}
