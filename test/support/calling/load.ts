/** Clients that submit one after the other and, like good clients, try again with the same Idempotency-Key. */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Acknowledged } from '../judging/consistent.js';
import { until } from '../until.js';

/** A request to create a submission; without an idempotency key it is sent once and never again. */
export type Creation = { artifactSha256: string; idempotencyKey?: string };

/** What a request came to: the status, or `broken` when no answer came. */
export type Answer = { status: number | 'broken'; body: AnswerBody; headers: Headers };
export type AnswerBody = {
  id: string;
  log_index: number;
  leaf_sha256: string;
  status: string;
  error?: { code: string; message: string };
};

export type LoadOptions = {
  /** Base URLs of the APIs that are up; asked anew for each request. */
  apis: () => readonly string[];
  apiKey: string;
  clients: number;
  /** The load ends by itself at this many acknowledged submissions. */
  most: number;
};

export type Load = {
  acknowledged: Acknowledged[];
  /** How often each status was answered. */
  statuses: Map<number | 'broken', number>;
  /** Waits until so many more submissions have been acknowledged than now. */
  more(count: number): Promise<void>;
  /** Lets each client finish what it has begun, trying again until it is acknowledged. */
  stop(): Promise<void>;
};

/** Between two requests of a client: bounds the load, which is not what is tested. */
const PAUSE_MS = 25;
/** More than fit into the time that `until` waits. */
const ATTEMPTS = 10_000;
const REQUEST_TIMEOUT_MS = 20_000;

/** A creation that no other is equal to. */
export function newCreation(keyed = true): Creation {
  const name = randomUUID();
  const artifactSha256 = createHash('sha256').update(name).digest('hex');
  return keyed ? { artifactSha256, idempotencyKey: name } : { artifactSha256 };
}

/** Sends a creation once. Never throws. */
export async function send(
  baseUrl: string,
  apiKey: string,
  { artifactSha256, idempotencyKey }: Creation,
): Promise<Answer> {
  try {
    const answer = await fetch(`${baseUrl}/v1/attestations`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify({
        artifact: { sha256: artifactSha256 },
        metadata: { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' },
      }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    return { status: answer.status, body: (await answer.json()) as AnswerBody, headers: answer.headers };
  } catch {
    return { status: 'broken', body: {} as AnswerBody, headers: new Headers() };
  }
}

/** What a 201 acknowledges. */
export function acknowledgement(creation: Creation, { body }: Answer): Acknowledged {
  return { ...creation, id: body.id, logIndex: body.log_index, leafSha256: body.leaf_sha256 };
}

/** Starts the clients. Every fourth creation goes without an idempotency key. */
export function startLoad(options: LoadOptions): Load {
  const { apis, apiKey, clients, most } = options;
  const acknowledged: Acknowledged[] = [];
  const statuses: Load['statuses'] = new Map();
  let stopped = false;
  let turn = 0;

  const create = async (creation: Creation) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const up = apis();
      const answer = await send(up[turn++ % up.length] ?? '', apiKey, creation);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 201) {
        acknowledged.push(acknowledgement(creation, answer));
        return;
      }
      if (creation.idempotencyKey === undefined) return;
      await delay(PAUSE_MS);
    }
    throw new Error(`a creation was not acknowledged in ${ATTEMPTS} attempts`);
  };
  const client = async () => {
    for (let i = 1; !stopped && acknowledged.length < most; i++) {
      await create(newCreation(i % 4 !== 0));
      await delay(PAUSE_MS);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => {});
  return {
    acknowledged,
    statuses,
    more: async (count) => {
      const wanted = Math.min(acknowledged.length + count, most);
      await until(`${wanted} submissions acknowledged`, () => acknowledged.length >= wanted);
    },
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}
