/**
 * Consumes: changes of evidence and metadata that shipped objects contain.
 * Commit point: the transaction that gives the shipments a new wanted revision and deletes the changes.
 * Emits: nothing; the reconciler finds the exports that are due.
 * A crash leaves: the changes; the reconciler finds them again.
 */
import { DONE, type Outcome } from '../../queue/outcome.js';
import { markChanges } from '../../store/exports/export-changes.js';
import type { LogPipeline } from '../pipeline.js';

/** Marks the shipments that changes concern. */
export async function markExportChanges({ pool }: Pick<LogPipeline, 'pool'>): Promise<Outcome> {
  while (await pool.begin((tx) => markChanges(tx)));
  return DONE;
}
