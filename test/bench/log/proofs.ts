import type { ServiceOfSize } from '../fill.js';
import type { Options } from '../options.js';
import { benchScript, runNode } from '../process.js';
import { median } from '../rounds.js';
import type { ProofCost, ProofsResult, ProofsTask } from './proofs-process.js';

/** Medians over the rounds, in a log of this size. */
export type ProofsMeasurement = ProofsResult & { leaves: number };

/**
 * What the inclusion proof and the whole bundle of a submission cost that was not read lately, with the look-up of its
 * row, in logs of several sizes in turns: without HTTP, and without the cache of bundles, so that the sizes compare.
 */
export async function measureProofs(
  serviceOf: ServiceOfSize,
  { sizes, rounds }: Pick<Options, 'sizes' | 'rounds'>,
): Promise<ProofsMeasurement[]> {
  const results = new Map<number, ProofsResult[]>(sizes.map((rows) => [rows, []]));
  for (const rows of sizes) await serviceOf(rows);
  for (let round = 0; round < rounds; round++) {
    for (const [rows, ofSize] of results) {
      const { databaseUrl, dir } = await serviceOf(rows);
      const task: ProofsTask = { databaseUrl, dir, rows };
      ofSize.push(await runNode<ProofsResult>([benchScript('log/proofs-process'), JSON.stringify(task)]));
    }
  }
  return [...results].map(([leaves, ofSize]) => summarize(leaves, ofSize));
}

function summarize(leaves: number, results: readonly ProofsResult[]): ProofsMeasurement {
  const of = (pick: (result: ProofsResult) => ProofCost): ProofCost => ({
    cpuMicros: median(results.map((result) => pick(result).cpuMicros)) ?? Number.NaN,
    postgresMicros: median(results.map((result) => pick(result).postgresMicros)) ?? Number.NaN,
    elapsedMicros: median(results.map((result) => pick(result).elapsedMicros)) ?? Number.NaN,
  });
  return {
    leaves,
    row: of(({ row }) => row),
    proof: of(({ proof }) => proof),
    bundle: of(({ bundle }) => bundle),
  };
}
