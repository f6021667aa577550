import { setTimeout as delay } from 'node:timers/promises';
import { headers, type JetStreamClient, type MsgHdrs, type NatsConnection, NatsError, nuid } from 'nats';
import type { Logger } from '../core/logger.js';
import { createOutageLog, type OutageLog } from '../core/outage-log.js';
import { untilAborted } from '../core/until-aborted.js';
import { inSpan, traceHeaders } from '../telemetry/spans.js';
import { connectNats, type NatsOptions } from './connection.js';
import { ensureConsumer, ensureStream } from './stream.js';

/**
 * Options of a JetStream connection. `prefix` separates the stream and its subjects from others on the same servers;
 * `replicas` is the stream's number of replicas. No attempt starts after `closing` aborts.
 */
export type QueueOptions = {
  url: string;
  prefix: string;
  name: string;
  replicas: number;
  stages: readonly string[];
  log: Logger;
  closing?: AbortSignal;
};

/** One work-queue stream and the connection to it. */
export type Queue = {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly stream: string;
  /** Subjects below it are plain NATS, outside the stream. */
  readonly broadcastPrefix: string;
  /** `<prefix>.<rest>`. */
  subject(rest: string): string;
  /** Whether NATS is connected. */
  isConnected(): boolean;
  /** Whether JetStream works: the last publish and fetch on this connection succeeded. */
  isUp(): boolean;
  /** Creates the stream and the consumers of these stages if they are missing. */
  ensure(stages: readonly string[]): Promise<void>;
  /** Publishes a message. Returns false if an equal one is pending. Rejects if JetStream does not acknowledge it. */
  publish(rest: string, payload: Uint8Array): Promise<boolean>;
  close(): Promise<void>;
};

/** The error code for a second message on a subject: one is pending or in progress. */
const ALREADY_WAITING = 10077;
const CONNECT_TIMEOUT_MS = 5_000;
const PUBLISH_TIMEOUT_MS = 2_000;
/** A connection that was just lost never finishes draining. */
const CLOSE_TIMEOUT_MS = 2_000;
const PROBE_FETCH_MS = 2_000;
const PROBE_PAUSE_MS = 500;
/** Probe interval: a cluster that lost its quorum does not notify clients. */
const PROBE_EVERY_MS = 10_000;
/** The consumer of probe messages. */
const PROBE = 'probe';

/** The name of the stream of a prefix. */
export function streamName(prefix: string): string {
  return prefix.toUpperCase().replaceAll('.', '_');
}

/**
 * Connects to JetStream and reconnects for ever. Resolves after the first connect; rejects if that fails. Probes from then
 * on whether JetStream works.
 */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { prefix, log, stages, replicas } = options;
  const closing = new AbortController();
  const connection = await connectUntilClosing(options, closing);
  const jetstream = connection.jetstream({ timeout: PUBLISH_TIMEOUT_MS });
  const stream = streamName(prefix);
  const subject = (rest: string) => `${prefix}.${rest}`;
  const ensure = async (wanted: readonly string[]) => {
    const manager = await connection.jetstreamManager({ timeout: PUBLISH_TIMEOUT_MS });
    await ensureStream(manager, { name: stream, subjects: subject('>'), replicas });
    for (const stage of wanted) await ensureConsumer(manager, stream, stage, subject(`${stage}.>`));
  };
  const state = watch(connection, closing.signal, log, async () => {
    await ensure([...stages, PROBE]);
    await probe(jetstream, stream, subject(`${PROBE}.${nuid.next()}`));
  });
  return {
    connection,
    jetstream,
    stream,
    broadcastPrefix: `${prefix}-broadcast`,
    subject,
    isConnected: state.isConnected,
    isUp: state.isUp,
    ensure,
    publish: async (rest, payload) => {
      if (connection.isClosed()) throw new Error('the queue is closed');
      try {
        await publishTraced(jetstream, subject(rest), payload);
        return true;
      } catch (error) {
        if (isAlreadyWaiting(error)) return false;
        state.suspect();
        throw error;
      }
    },
    close: async () => {
      const late = AbortSignal.timeout(CLOSE_TIMEOUT_MS);
      if (state.isConnected()) await untilAborted(connection.drain(), late).catch(() => {});
      closing.abort();
      await connection.close();
    },
  };
}

/** Connects, and aborts `closing` with the caller's signal from then on. Adds no listener to that one if it fails. */
async function connectUntilClosing(options: QueueOptions, closing: AbortController): Promise<NatsConnection> {
  const close = () => closing.abort();
  options.closing?.addEventListener('abort', close, { once: true });
  if (options.closing?.aborted) close();
  try {
    return await connectNats(natsOptions(options, closing.signal));
  } catch (error) {
    options.closing?.removeEventListener('abort', close);
    throw error;
  }
}

/** The client's options for the servers of a NATS_URL. */
export function natsOptions(
  { url, name }: Pick<QueueOptions, 'url' | 'name'>,
  closing: AbortSignal,
): NatsOptions {
  const servers = url.split(',').map((server) => new URL(server));
  const { username, password } = servers[0] ?? new URL(url);
  return {
    servers: servers.map(({ host }) => host),
    ...(servers.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}),
    name,
    timeout: CONNECT_TIMEOUT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    pingInterval: 10_000,
    maxPingOut: 2,
    ...(username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : {}),
    closing,
  };
}

/** Publishes with the `traceparent` of the active span. */
function publishTraced(jetstream: JetStreamClient, subject: string, payload: Uint8Array): Promise<unknown> {
  const attributes = { 'messaging.system': 'nats', 'messaging.operation.type': 'send' };
  return inSpan('publish', { kind: 'producer', attributes }, () => {
    const context = contextHeaders();
    return jetstream.publish(subject, payload, context && { headers: context });
  });
}

function contextHeaders(): MsgHdrs | undefined {
  const { traceparent } = traceHeaders();
  if (traceparent === undefined) return undefined;
  const context = headers();
  context.set('traceparent', traceparent);
  return context;
}

function isAlreadyWaiting(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.err_code === ALREADY_WAITING;
}

/** Publishes a probe message and fetches one: this one, or one of a process that probes at the same time. */
async function probe(jetstream: JetStreamClient, stream: string, subject: string): Promise<void> {
  await jetstream.publish(subject);
  const consumer = await jetstream.consumers.get(stream, PROBE);
  const messages = await consumer.fetch({ max_messages: 1, expires: PROBE_FETCH_MS });
  let fetched = 0;
  for await (const message of messages) {
    message.ack();
    fetched++;
  }
  if (fetched === 0) throw new Error('JetStream delivers none of the messages that it acknowledged');
}

type Watched = Pick<Queue, 'isConnected' | 'isUp'> & {
  /** Probes again, after a publish without acknowledgement. */
  suspect(): void;
};

/** Tracks the connection and probes JetStream with `check`: after each connect, on doubt and periodically. */
function watch(
  connection: NatsConnection,
  closing: AbortSignal,
  log: Logger,
  check: () => Promise<void>,
): Watched {
  const outageLog = createOutageLog(log, () => performance.now());
  let connected = true;
  let up = false;
  let isChecking = false;
  const isClosing = () => closing.aborted || connection.isDraining() || connection.isClosed();
  const probeUntilUp = async () => {
    if (isChecking) return;
    isChecking = true;
    do {
      up = await works(check, outageLog, isClosing);
      if (!up) await delay(PROBE_PAUSE_MS, undefined, { signal: closing }).catch(() => {});
    } while (!up && connected && !isClosing());
    isChecking = false;
  };
  void follow(connection, (isConnected) => {
    connected = isConnected;
    up = false;
    if (isConnected) void probeUntilUp();
    else outageLog.failed({ reason: 'the connection was lost' }, AWAY);
  });
  void probeUntilUp();
  const probing = setInterval(() => connected && void probeUntilUp(), PROBE_EVERY_MS).unref();
  closing.addEventListener('abort', () => clearInterval(probing), { once: true });
  return {
    isConnected: () => connected && !connection.isClosed(),
    isUp: () => up && connected && !connection.isClosed(),
    suspect: () => void probeUntilUp(),
  };
}

const AWAY = 'JetStream is away; due work is run from the tables';

async function works(
  check: () => Promise<void>,
  outageLog: OutageLog,
  isClosing: () => boolean,
): Promise<boolean> {
  try {
    await check();
    outageLog.recovered({}, 'JetStream is back');
    return true;
  } catch (error) {
    if (!isClosing()) outageLog.failed({ reason: (error as Error).message }, AWAY);
    return false;
  }
}

async function follow(connection: NatsConnection, set: (isConnected: boolean) => void): Promise<void> {
  for await (const { type } of connection.status()) {
    if (type === 'disconnect') set(false);
    else if (type === 'reconnect') set(true);
  }
}
