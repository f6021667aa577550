import { BatchStatus, BatchStatusSchema } from '../../../gen/attestation/v1/batches_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import type { Transition } from '../log/store/settle.js';
import type { Metrics } from './metrics.js';

/** A time-stamping authority takes seconds, a blockchain hours. */
const BUCKETS_SECONDS = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400];
const OUTCOMES = [BatchStatus.WITNESSED, BatchStatus.PARTIAL, BatchStatus.FAILED].map((status) =>
  enumName(BatchStatusSchema, status),
);

/** Adds the histogram of the time to witnessed. @returns counts a batch that this worker settled, at its first transition */
export function settledHistogram(metrics: Metrics): (transition: Transition) => void {
  const histogram = metrics.addHistogram({
    name: 'attest_batch_settled_seconds',
    help: 'Time from the first submission of a batch until it was witnessed, partial or failed, per log; once per batch',
    labelNames: ['log', 'outcome'],
    buckets: BUCKETS_SECONDS,
  });
  const started = new Set<string>();
  return ({ origin: log, status, firstAfterSeconds }) => {
    if (firstAfterSeconds === null) return;
    if (!started.has(log)) for (const outcome of OUTCOMES) histogram.start({ log, outcome });
    started.add(log);
    histogram.observe(Math.max(0, firstAfterSeconds), { log, outcome: enumName(BatchStatusSchema, status) });
  };
}
