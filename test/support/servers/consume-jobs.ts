/** A worker that does what the queue brings it and never looks into the tables, so that it is the jobs that wake it. */
import type { Test } from 'tap';
import { createOutageLogs } from '../../../src/server/core/outage-log.js';
import { createJobSender } from '../../../src/server/jobs/job-sender.js';
import { consumeStages, STAGES } from '../../../src/server/pipeline/consumers.js';
import type { Pipeline } from '../../../src/server/pipeline/pipeline.js';
import type { StopConsuming } from '../../../src/server/queue/consume.js';
import type { App } from '../app.js';
import { makePipeline } from '../pipeline.js';
import { until } from '../until.js';

/** Consumes the jobs of an app without a worker until the test ends. @returns the pipeline, which has no witnesses */
export async function consumeJobs(t: Test, { config, queuePrefix }: App): Promise<Pipeline> {
  const { databaseUrl, dataDir: dir } = config;
  const made = await makePipeline(t, { databaseUrl, dir, witnesses: [] });
  const outageLogs = createOutageLogs(made.pipeline.log, () => performance.now());
  const consuming: StopConsuming[] = [];
  const jobs = createJobSender({
    url: config.natsUrl,
    prefix: queuePrefix,
    name: 'test worker',
    replicas: 1,
    stages: STAGES,
    log: made.pipeline.log,
    onQueue: (queue) => consuming.push(...consumeStages(pipeline, queue, jobs, outageLogs)),
  });
  const pipeline: Pipeline = { ...made.pipeline, send: jobs.send };
  t.teardown(async () => {
    await Promise.all(consuming.map((stop) => stop()));
    await jobs.close();
  });
  await until('JetStream works', async () => jobs.queue() !== undefined);
  return pipeline;
}
