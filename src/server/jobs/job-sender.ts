import { setTimeout as delay } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Job, JobSchema } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { createOutageLog } from '../core/outage-log.js';
import { openQueue, type Queue, type QueueOptions } from '../queue/jetstream.js';
import { jobSubject } from './job.js';

/** Publishes jobs to JetStream while it is available. */
export type JobSender = {
  /** The queue, if JetStream works. */
  queue(): Queue | undefined;
  /** The queue, if NATS is connected; enough for core NATS. */
  connected(): Queue | undefined;
  /** Publishes without waiting. The reconciler finds lost jobs again. */
  send(job: Job): void;
  /** Publishes a job. Returns false if an equal one is pending. Rejects if JetStream did not acknowledge it. */
  publish(job: Job): Promise<boolean>;
  close(): Promise<void>;
};

const RECONNECT_MS = 1_000;

/** Options of a job sender. `onQueue` runs after the first successful connect. */
type JobSenderOptions = Omit<QueueOptions, 'closing' | 'url'> & {
  /** Undefined if the service runs without JetStream. */
  url: string | undefined;
  onQueue?: (queue: Queue) => void;
};

/** Connects in the background and retries until it succeeds; until then the reconciler runs the jobs. */
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
    return open.publish(jobSubject(job), toBinary(JobSchema, job));
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

/** Resolves once connected, or when `closing` aborts. */
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

/** Decodes a job message. */
export function readJob(payload: Uint8Array): Job {
  return fromBinary(JobSchema, payload);
}
