import type { Options } from './options.js';
import { benchScript, runNode } from './process.js';
import type { ProofCost, ProofsResult, ProofsTask } from './proofs-process.js';
import { median } from './rounds.js';
import type { Services } from './services.js';

/** Medians over the rounds, in a log of this size. */
export type ProofsMeasurement = ProofsResult & { leaves: number };

/**
 * What the inclusion proof and the whole bundle of a submission cost that was not read lately, with the look-up of its
 * row: without HTTP, and without the cache of bundles, so that logs of any size compare.
 */
export async function measureProofs(services: Services, options: Options): Promise<ProofsMeasurement> {
  const results: ProofsResult[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const task: ProofsTask = { databaseUrl: services.databaseUrl, dir: services.dir, rows: options.rows };
    results.push(await runNode<ProofsResult>([benchScript('proofs-process'), JSON.stringify(task)]));
  }
  const of = (pick: (result: ProofsResult) => ProofCost): ProofCost => ({
    cpuMicros: median(results.map((result) => pick(result).cpuMicros)) ?? Number.NaN,
    postgresMicros: median(results.map((result) => pick(result).postgresMicros)) ?? Number.NaN,
  });
  return {
    leaves: options.rows,
    row: of(({ row }) => row),
    proof: of(({ proof }) => proof),
    bundle: of(({ bundle }) => bundle),
  };
}
