import type { JobSender } from '../jobs/job-sender.js';
import type { Metrics } from './metrics.js';

/** Adds whether NATS is connected and JetStream works, for each client of the process. */
export function addQueueGauges(metrics: Metrics, clients: ReadonlyMap<string, JobSender>): void {
  const each = (of: (jobs: JobSender) => boolean) => () =>
    [...clients].map(([client, jobs]) => ({ labels: { client }, value: Number(of(jobs)) }));
  metrics.addGauge({
    name: 'attest_nats_connected',
    help: '1 while a connection to NATS stands',
    labelNames: ['client'],
    merge: 'min',
    read: each((jobs) => jobs.connected() !== undefined),
  });
  metrics.addGauge({
    name: 'attest_jetstream_up',
    help: '1 since a publish and a fetch have worked on the connection that stands',
    labelNames: ['client'],
    merge: 'min',
    read: each((jobs) => jobs.queue() !== undefined),
  });
}
