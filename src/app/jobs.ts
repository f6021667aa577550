import { setTimeout as delay } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Job, JobSchema } from '../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Logger } from '../logger.js';
import { jobSubject } from '../pipeline/job.js';
import { openQueue, type Queue } from '../queue/jetstream.js';

/** Hands jobs to JetStream when it is there. */
export type JobSender = {
  /** The queue while it can be reached. */
  queue(): Queue | undefined;
  /** At once and without waiting; what is lost is found again by the reconciler. */
  send(job: Job): void;
  /** Rejects when JetStream did not take the job. */
  publish(job: Job): Promise<void>;
  close(): Promise<void>;
};

const RECONNECT_MS = 1_000;

/** What jobs are sent through: `onQueue` runs once the queue is up for the first time. */
export type JobSenderOptions = {
  url: string;
  prefix: string;
  name: string;
  log: Logger;
  onQueue?: (queue: Queue) => Promise<void>;
};

/** Starts connecting, for as long as it takes; until it has, jobs are left to the reconciler. */
export function createJobSender(options: JobSenderOptions): JobSender {
  const closing = new AbortController();
  let queue: Queue | undefined;
  const connecting = connectForEver(options, closing.signal, (opened) => {
    queue = opened;
  });
  const up = () => (queue?.isUp() ? queue : undefined);
  const publish = async (job: Job) => {
    const open = up();
    if (open === undefined) throw new Error('JetStream is away');
    await open.publish(jobSubject(job), toBinary(JobSchema, job));
  };
  return {
    queue: up,
    publish,
    send: (job) => void publish(job).catch(() => {}),
    close: async () => {
      closing.abort();
      await connecting;
      await queue?.close();
    },
  };
}

async function connectForEver(
  options: JobSenderOptions,
  closing: AbortSignal,
  opened: (queue: Queue) => void,
): Promise<void> {
  while (!closing.aborted) {
    let queue: Queue | undefined;
    try {
      queue = await openQueue(options);
      await options.onQueue?.(queue);
      opened(queue);
      return;
    } catch (error) {
      await queue?.close();
      options.log.warn({ reason: (error as Error).message }, 'JetStream cannot be reached; trying again');
      await delay(RECONNECT_MS, undefined, { signal: closing }).catch(() => {});
    }
  }
}

/** A job from a message's bytes. */
export function readJob(payload: Uint8Array): Job {
  return fromBinary(JobSchema, payload);
}
