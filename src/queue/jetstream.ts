import { setTimeout as delay } from 'node:timers/promises';
import {
  AckPolicy,
  connect,
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  type NatsConnection,
  NatsError,
  RetentionPolicy,
  StorageType,
} from 'nats';
import type { Logger } from '../logger.js';

/** How JetStream is reached. `prefix` sets the stream and its subjects apart from others on the same servers. */
export type QueueOptions = { url: string; prefix: string; name: string; log: Logger };

/** One work-queue stream and the connection to it. */
export type Queue = {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly stream: string;
  /** Subjects below it are plain NATS, outside the stream. */
  readonly broadcastPrefix: string;
  /** `<prefix>.<rest>`. */
  subject(rest: string): string;
  /** Whether the connection stands now. */
  isUp(): boolean;
  /** Makes the stream and the consumers of these stages, where missing. */
  ensure(stages: readonly string[]): Promise<void>;
  /** Hands a message on. Waiting already is as good. Rejects when JetStream does not confirm it. */
  publish(rest: string, payload: Uint8Array): Promise<void>;
  close(): Promise<void>;
};

/** A second message on a subject is refused with this code: one is waiting, or being worked on. */
const ALREADY_WAITING = 10077;
const PUBLISH_TIMEOUT_MS = 2_000;
/** A connection that has just been lost is never drained. */
const CLOSE_TIMEOUT_MS = 2_000;
/** A message that is not answered for this long is delivered again; leases and natural keys make that harmless. */
const ACK_WAIT_MS = 60_000;

/**
 * Connects to JetStream; the connection is kept up for ever. Resolves when it is up the first time; rejects when
 * the server cannot be reached now.
 */
export async function openQueue({ url, prefix, name, log }: QueueOptions): Promise<Queue> {
  const servers = url.split(',').map((server) => new URL(server));
  const { username, password } = servers[0] ?? new URL(url);
  const connection = await connect({
    servers: servers.map(({ host }) => host),
    ...(servers.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    pingInterval: 10_000,
    maxPingOut: 2,
    ...(username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : {}),
  });
  let up = true;
  void followStatus(connection, log, (now) => {
    up = now;
  });
  const jetstream = connection.jetstream({ timeout: PUBLISH_TIMEOUT_MS });
  const stream = prefix.toUpperCase().replaceAll('.', '_');
  const subject = (rest: string) => `${prefix}.${rest}`;
  return {
    connection,
    jetstream,
    stream,
    broadcastPrefix: `${prefix}-broadcast`,
    subject,
    isUp: () => up && !connection.isClosed(),
    ensure: async (stages) => {
      const manager = await connection.jetstreamManager({ timeout: PUBLISH_TIMEOUT_MS });
      await ensureStream(manager, stream, subject('>'));
      for (const stage of stages) await ensureConsumer(manager, stream, stage, subject(`${stage}.>`));
    },
    publish: async (rest, payload) => {
      if (connection.isClosed()) throw new Error('the queue is closed');
      await jetstream.publish(subject(rest), payload).catch((error: unknown) => {
        if (!isAlreadyWaiting(error)) throw error;
      });
    },
    close: async () => {
      const late = delay(CLOSE_TIMEOUT_MS, undefined, { ref: false });
      if (up) await Promise.race([connection.drain().catch(() => {}), late]);
      await connection.close();
    },
  };
}

function isAlreadyWaiting(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.err_code === ALREADY_WAITING;
}

async function ensureStream(manager: JetStreamManager, name: string, subjects: string): Promise<void> {
  const config = {
    name,
    subjects: [subjects],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
    max_msgs_per_subject: 1,
  };
  await manager.streams.add(config);
}

async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  stage: string,
  filter: string,
): Promise<void> {
  await manager.consumers.add(stream, {
    durable_name: stage,
    filter_subject: filter,
    ack_policy: AckPolicy.Explicit,
    ack_wait: ACK_WAIT_MS * 1_000_000,
    max_deliver: -1,
    max_ack_pending: 1_000,
  });
}

async function followStatus(
  connection: NatsConnection,
  log: Logger,
  set: (up: boolean) => void,
): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === 'disconnect') {
      set(false);
      log.warn('JetStream is away; due work is run from the tables');
    } else if (status.type === 'reconnect') {
      set(true);
      log.info('JetStream is back');
    }
  }
}
