import {
  AckPolicy,
  DiscardPolicy,
  type JetStreamManager,
  NatsError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from 'nats';

/** The desired stream: all `subjects` below a prefix, on `replicas` servers. */
export type StreamWish = { name: string; subjects: string; replicas: number };

/** The servers that keep a stream, by name; `away` of them do not answer or have not caught up. */
export type StreamServers = { names: string[]; away: string[] };

/** The server's codes for a missing stream or consumer, and for one that exists already. */
const STREAM_NOT_FOUND = 10059;
const STREAM_EXISTS = 10058;
const CONSUMER_NOT_FOUND = 10014;
/**
 * How long a message waits for a sign of its worker (`consume` sends one each {@link IN_PROGRESS_MS}) before another gets it.
 * Leases and natural keys make redelivery harmless.
 */
const ACK_WAIT_MS = 4_000;
/** Interval of the signs that a message is in progress. */
export const IN_PROGRESS_MS = 1_000;
/** What earlier versions created consumers with: a dead worker's messages waited as long. */
const FORMER_ACK_WAIT_MS = 60_000;
/** One message per subject: with more, the reconciler would flood the stream while no worker runs. */
const MOST_PER_SUBJECT = 16;

/**
 * Creates the stream if it is missing. Keeps an operator's settings in an existing stream, except those that break the
 * service and a smaller number of replicas. Throws if the server refuses.
 */
export async function ensureStream(manager: JetStreamManager, wish: StreamWish): Promise<void> {
  const found = (await findStream(manager, wish.name))?.config;
  if (found === undefined) {
    await manager.streams.add(newStream(wish)).catch((error: unknown) => {
      if (codeOf(error) !== STREAM_EXISTS) throw error;
    });
    return;
  }
  const change = changesNeeded(found, wish);
  if (Object.keys(change).length === 0) return;
  await manager.streams.update(wish.name, { ...found, ...change }).catch((error: Error) => {
    const wrong = Object.keys(change).join(', ');
    throw new Error(`the stream ${wish.name} cannot be used as it is (${wrong}): ${error.message}`);
  });
}

/** Finds who keeps a stream; undefined if there is none. Without a cluster no server is named. */
export async function findStreamServers(
  manager: JetStreamManager,
  name: string,
): Promise<StreamServers | undefined> {
  const found = await findStream(manager, name);
  if (found === undefined) return undefined;
  const { leader, replicas = [] } = found.cluster ?? {};
  return {
    names: [...(leader ? [leader] : []), ...replicas.map((replica) => replica.name)].sort(),
    away: replicas.filter(({ current, offline }) => offline || !current).map((replica) => replica.name),
  };
}

async function findStream(manager: JetStreamManager, name: string): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (codeOf(error) === STREAM_NOT_FOUND) return undefined;
    throw error;
  }
}

function newStream({ name, subjects, replicas }: StreamWish): Partial<StreamConfig> & { name: string } {
  return {
    name,
    subjects: [subjects],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
    max_msgs_per_subject: 1,
    num_replicas: replicas,
  };
}

function changesNeeded(found: StreamConfig, { subjects, replicas }: StreamWish): Partial<StreamConfig> {
  const perSubject = found.max_msgs_per_subject;
  const others = found.subjects.filter((subject) => !subject.startsWith(subjects.slice(0, -1)));
  return {
    ...(!found.subjects.includes(subjects) && { subjects: [...others, subjects] }),
    ...(found.retention !== RetentionPolicy.Workqueue && { retention: RetentionPolicy.Workqueue }),
    ...(!(perSubject >= 1 && perSubject <= MOST_PER_SUBJECT) && { max_msgs_per_subject: 1 }),
    ...(found.num_replicas < replicas && { num_replicas: replicas }),
  };
}

/**
 * Creates the consumer of a stage if it is missing. Keeps an existing one that receives the stage's messages, but for the
 * acknowledgement timeout of earlier versions.
 */
export async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  stage: string,
  filter: string,
): Promise<void> {
  try {
    const { config } = await manager.consumers.info(stream, stage);
    if (config.filter_subject === filter && config.ack_policy === AckPolicy.Explicit) {
      if (config.ack_wait === nanoseconds(FORMER_ACK_WAIT_MS))
        await manager.consumers.update(stream, stage, { ack_wait: nanoseconds(ACK_WAIT_MS) });
      return;
    }
  } catch (error) {
    if (codeOf(error) !== CONSUMER_NOT_FOUND) throw error;
  }
  await manager.consumers.add(stream, {
    durable_name: stage,
    filter_subject: filter,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanoseconds(ACK_WAIT_MS),
    max_deliver: -1,
    max_ack_pending: 1_000,
  });
}

function nanoseconds(ms: number): number {
  return ms * 1_000_000;
}

function codeOf(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined;
}
