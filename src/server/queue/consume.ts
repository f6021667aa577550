import { setTimeout as delay } from 'node:timers/promises';
import type { JsMsg } from 'nats';
import { exponentialMs } from '../../protocol/backoff.js';
import type { Logger } from '../core/logger.js';
import { inTrace } from '../telemetry/spans.js';
import type { Queue } from './jetstream.js';
import type { Outcome } from './outcome.js';
import { IN_PROGRESS_MS } from './stream.js';

/** One stage's consumer. `handle` returns the outcome of a message; `afterDone` runs after its acknowledgement. */
type Consumption = {
  stage: string;
  /** Maximum concurrent messages. */
  concurrency: number;
  handle: (payload: Uint8Array) => Promise<Outcome>;
  /** The stream refuses a message while an equal one is pending, so the stage checks here for new work. */
  afterDone: (payload: Uint8Array) => Promise<void>;
};

/** Stops pulling messages; resolves once those in progress are finished. */
export type StopConsuming = () => Promise<void>;

const PULL_MS = 5_000;
const TROUBLE_PAUSE_MS = 500;
const RETRY = { firstMs: 500, maxMs: 30_000 };

/**
 * Consumes messages of one stage until stopped. The only place that acknowledges. Recreates the stream and the consumer
 * after any failure and continues.
 */
export function consume(queue: Queue, consumption: Consumption, log: Logger): StopConsuming {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const loop = pullForever(queue, consumption, log, stopping.signal, running);
  return async () => {
    stopping.abort();
    await loop;
    await Promise.all(running);
  };
}

async function pullForever(
  queue: Queue,
  consumption: Consumption,
  log: Logger,
  stopping: AbortSignal,
  running: Set<Promise<void>>,
): Promise<void> {
  await queue.ensure([consumption.stage]).catch(() => {});
  while (!stopping.aborted) {
    try {
      await pull(queue, consumption, log, stopping, running);
    } catch (error) {
      if (stopping.aborted) return;
      const { message: reason } = error as Error;
      log.debug({ reason, stage: consumption.stage }, 'pulling from JetStream failed');
      await delay(TROUBLE_PAUSE_MS, undefined, { signal: stopping }).catch(() => {});
      if (!stopping.aborted) await queue.ensure([consumption.stage]).catch(() => {});
    }
  }
}

/** Pulls up to `concurrency` messages and handles each on arrival. */
async function pull(
  queue: Queue,
  consumption: Consumption,
  log: Logger,
  stopping: AbortSignal,
  running: Set<Promise<void>>,
): Promise<void> {
  while (running.size >= consumption.concurrency) await Promise.race(running);
  const consumer = await queue.jetstream.consumers.get(queue.stream, consumption.stage);
  const messages = await consumer.fetch({
    max_messages: consumption.concurrency - running.size,
    expires: PULL_MS,
  });
  const stop = () => messages.stop();
  stopping.addEventListener('abort', stop, { once: true });
  try {
    for await (const message of messages) {
      const work = workOn(consumption, message, log).finally(() => running.delete(work));
      running.add(work);
      while (running.size >= consumption.concurrency) await Promise.race(running);
    }
  } finally {
    stopping.removeEventListener('abort', stop);
  }
}

async function workOn(consumption: Consumption, message: JsMsg, log: Logger): Promise<void> {
  const { stage, handle, afterDone } = consumption;
  const timer = setInterval(() => message.working(), IN_PROGRESS_MS);
  try {
    const traceparent = message.headers?.get('traceparent') || undefined;
    const attributes = { 'messaging.system': 'nats', 'messaging.operation.type': 'process' };
    const options = { kind: 'consumer', traceparent, attributes } as const;
    const outcome = await inTrace(stage, options, () => handle(message.data));
    if (outcome.type === 'retry') {
      message.nak(outcome.delayMs);
    } else if (outcome.type === 'giveUp') {
      log.warn({ stage, subject: message.subject, reason: outcome.reason }, 'a job was given up');
      message.term();
    } else {
      await message.ackAck();
      await afterDone(message.data);
    }
  } catch (error) {
    log.error({ err: error, stage, subject: message.subject }, 'a job failed');
    message.nak(exponentialMs(message.info.redeliveryCount, RETRY));
  } finally {
    clearInterval(timer);
  }
}
