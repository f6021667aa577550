/** The first bad events of a process: Prometheus sees an increase only of a series that it has scraped before. */
import t from 'tap';
import { BatchStatus } from '../../../gen/attestation/v1/batches_pb.js';
import { createMetrics, type Metrics } from '../../../src/server/ops/metrics.js';
import { settledHistogram } from '../../../src/server/ops/settled-histogram.js';
import { disproveFiring } from '../../support/judging/alerts.js';

const BURNS = ['AttestErrorBudgetBurnsFast', 'AttestErrorBudgetBurnsSlowly'];
const TRANSITION = { batchId: 'bat_1', treeSize: 1, origin: 'live.log.example.com', firstAfterSeconds: 2 };
/** Of a service in which nothing else is wrong. */
const QUIET = 'attest_accept_queued_submissions 0\nattest_export_spool_bytes 0\nattest_log_frozen 0\n';

async function scrape(metrics: Metrics) {
  return { api: QUIET + (await metrics.read()).text };
}

t.test('the first server errors of an RPC burn the budget', async (t) => {
  for (const status of [500, 503, 504]) {
    const metrics = createMetrics();
    const create = (status: number) =>
      metrics.observeRequest({
        rpc: 'AttestationService/CreateAttestation',
        protocol: 'rest',
        status,
        durationMs: 5,
      });
    create(201);
    const before = await scrape(metrics);
    for (let i = 0; i < 20; i++) create(status);
    t.equal(await disproveFiring({ before, during: await scrape(metrics) }, BURNS), undefined, `${status}`);
  }
});

t.test('the first batches of a log that fail burn the budget', async (t) => {
  for (const status of [BatchStatus.PARTIAL, BatchStatus.FAILED]) {
    const metrics = createMetrics();
    const observe = settledHistogram(metrics);
    const settle = (status: BatchStatus) => observe({ ...TRANSITION, status });
    settle(BatchStatus.WITNESSED);
    const before = await scrape(metrics);
    for (let i = 0; i < 20; i++) settle(status);
    t.equal(await disproveFiring({ before, during: await scrape(metrics) }, BURNS), undefined);
  }
});
