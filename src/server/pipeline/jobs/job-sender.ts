import { setTimeout as delay } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Job, JobSchema } from '../../../../gen/attestation/jobs/v1/jobs_pb.js';
import { createOutageLog } from '../../core/outage-log.js';
import { openQueue, type Queue, type QueueOptions } from '../../queue/jetstream.js';
import { jobSubject } from './job.js';

/** Hands jobs to JetStream when it is there. */
export type JobSender = {
  /** The queue while it works. */
  queue(): Queue | undefined;
  /** The queue while there is a connection, for what needs NATS alone. */
  connected(): Queue | undefined;
  /** At once and without waiting; what is lost is found again by the reconciler. */
  send(job: Job): void;
  /** Rejects when JetStream did not take the job. */
  publish(job: Job): Promise<void>;
  close(): Promise<void>;
};

const RECONNECT_MS = 1_000;

/** What jobs are sent through: `onQueue` runs once the connection stands for the first time. */
export type JobSenderOptions = Omit<QueueOptions, 'closing' | 'url'> & {
  /** None where the service runs without JetStream. */
  url: string | undefined;
  onQueue?: (queue: Queue) => void;
};

/** Starts connecting, for as long as it takes; until it has, jobs are left to the reconciler. */
export function createJobSender({ url, ...others }: JobSenderOptions): JobSender {
  if (url === undefined) return WITHOUT_JETSTREAM;
  const options = { ...others, url };
  const closing = new AbortController();
  let queue: Queue | undefined;
  const connecting = connectWithRetry({ ...options, closing: closing.signal }, (opened) => {
    queue = opened;
    options.onQueue?.(opened);
  });
  const up = () => (queue?.isUp() ? queue : undefined);
  const publish = async (job: Job) => {
    const open = up();
    if (open === undefined) throw new Error('JetStream is away');
    await open.publish(jobSubject(job), toBinary(JobSchema, job));
  };
  return {
    queue: up,
    connected: () => (queue?.isConnected() ? queue : undefined),
    publish,
    send: (job) => void publish(job).catch(() => {}),
    close: async () => {
      if (queue === undefined) closing.abort();
      await connecting;
      await queue?.close();
      closing.abort();
    },
  };
}

const WITHOUT_JETSTREAM: JobSender = {
  queue: () => undefined,
  connected: () => undefined,
  send: () => {},
  publish: async () => {
    throw new Error('there is no JetStream');
  },
  close: async () => {},
};

/** Resolves when it stands, or `closing` is aborted. */
async function connectWithRetry(
  options: QueueOptions & { closing: AbortSignal },
  opened: (queue: Queue) => void,
): Promise<void> {
  const { closing, log } = options;
  const outageLog = createOutageLog(log, () => performance.now());
  while (!closing.aborted) {
    try {
      opened(await openQueue(options));
      return;
    } catch (error) {
      const { message: reason } = error as Error;
      if (!closing.aborted)
        outageLog.failed({ reason }, 'JetStream cannot be reached; due work is run from the tables');
      await delay(RECONNECT_MS, undefined, { signal: closing }).catch(() => {});
    }
  }
}

/** A job from a message's bytes. */
export function readJob(payload: Uint8Array): Job {
  return fromBinary(JobSchema, payload);
}
