/** Checks evidence again that can be undone after it has landed, such as by a deep reorganisation of a chain. */

import { callWitness } from './call-witness.js';
import type { Witness } from './clients/witness.js';
import { findNewestEvidence } from './store/witnesses.js';
import type { WitnessStage } from './witness-stage.js';

/**
 * Creates a check of the newest evidence of each witness and log: what is undone of a chain is undone from some block on.
 * It raises an alarm, each time, about evidence that was not valid twice in a row: nodes behind one address differ for
 * moments.
 */
export function createRecheck(pipeline: WitnessStage): () => Promise<void> {
  const suspects = new Set<string>();
  const recheckOne = async (witness: Witness, found: Found): Promise<void> => {
    const { origin, treeSize } = found;
    const key = `${witness.name} ${origin} ${treeSize}`;
    const reason = await findReason(pipeline, witness, found);
    if (reason === undefined) suspects.delete(key);
    else if (!suspects.has(key)) suspects.add(key);
    else {
      const lost = { origin, witness: witness.name, treeSize, reason };
      pipeline.log.fatal(lost, 'ALARM: evidence that had landed is not valid any more');
      pipeline.observeAlarm(witness.name);
    }
  };
  return async () => {
    for (const { witness } of pipeline.witnesses) {
      if (witness.recheck === undefined) continue;
      for (const found of await findNewestEvidence(pipeline.pool, witness.name))
        await recheckOne(witness, found);
    }
  };
}

type Found = Awaited<ReturnType<typeof findNewestEvidence>>[number];

/** The reason why evidence is invalid. Undefined also if the witness cannot be reached: its next request reports that. */
async function findReason(
  pipeline: WitnessStage,
  witness: Witness,
  { origin, treeSize, evidence }: Found,
): Promise<string | undefined> {
  const call = { origin, witness: witness.name, treeSize, attempt: 0 };
  try {
    return await callWitness(pipeline, call, async (signal) => witness.recheck?.(evidence, signal));
  } catch {
    return undefined;
  }
}
