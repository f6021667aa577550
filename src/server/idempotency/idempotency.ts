import { createHmac, type Hmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type DescMethodUnary, type JsonObject, type Message, toJson } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Config } from '../../config/config.js';
import { jcs } from '../../proof/bytes/jcs.js';
import type { Call } from '../core/call.js';
import { ApiError, idempotencyInProgress } from '../core/errors.js';
import type { Pool, Sql } from '../database/connect.js';
import { confirmDurable } from '../database/session.js';
import { withoutDefaults } from '../json/defaults.js';
import { deriveKeyRing, type KeyRing } from '../keys/key-ring.js';
import {
  type Claim,
  type Decision,
  type EarlierClaim,
  findClaim,
  findClaims,
  runClaimed,
} from './idempotency-keys.js';

/** Dependencies of handlers that honour `Idempotency-Key`. */
export type Idempotency = {
  pool: Pool;
  /** Sub-keys that hash requests. New hashes use the first; hashes under any of them match. */
  keys: KeyRing;
  retentionMs: number;
  /** Monotonic milliseconds. */
  clock: () => number;
};

/** Creates {@link Idempotency} over an open database. */
export function openIdempotency({ secrets, idempotencyRetentionMs }: Config, pool: Pool): Idempotency {
  return {
    pool,
    keys: deriveKeyRing(secrets.secretKeys, 'idempotency'),
    retentionMs: idempotencyRetentionMs,
    clock: () => performance.now(),
  };
}

/** The effect of an RPC, and how a replay of it is answered. */
type Once<M extends Message> = {
  /** Writes only through `tx`. If it throws, the transaction is rolled back, the claim included, and the call fails. */
  effect: (tx: Sql) => Promise<{ resourceId: string; response: M }>;
  /** Returns the resource in its current state. */
  replay: (resourceId: string) => Promise<M>;
};

const WAIT_MS = 5_000;
const RETRY_MS = 20;

/**
 * Runs the effect of a mutating RPC in a transaction, once per idempotency key. A later call with the same key and
 * message is replayed: it gets the resource and `Idempotent-Replayed`. Commit point: that of the transaction, which
 * holds the effect and the claim of the key. Throws `idempotency.key_reused` if the key was used with another message,
 * and `idempotency.in_progress` if a call with the same key takes longer than 5 s.
 *
 * @param request the message as received
 */
export async function runIdempotently<M extends Message>(
  deps: Idempotency,
  call: Call,
  request: Message,
  { effect, replay }: Once<M>,
): Promise<M> {
  const decide = (tx: Sql) => decideDurably(tx, effect);
  if (call.idempotencyKey === undefined) return effectOf(await deps.pool.begin(decide)).response;
  const claim = claimOf(deps, call, call.idempotencyKey, request);
  const deadline = deps.clock() + WAIT_MS;
  for (;;) {
    const claimed = await runClaimed(deps.pool, claim, decide);
    if (claimed.outcome === 'done') return effectOf(claimed).response;
    if (claimed.outcome === 'reused') throw keyReused();
    if (claimed.outcome === 'replayed') {
      markReplayed(call);
      return replay(claimed.resourceId);
    }
    if (deps.clock() >= deadline) throw idempotencyInProgress();
    await delay(RETRY_MS);
  }
}

/**
 * Runs an effect in a transaction whose commit waits for the synchronous standby also if there was nothing to change, or if
 * the effect refuses: `submission.redacted` tells of an earlier change, which must be as durable. What the effect wrote
 * before it refused is rolled back.
 */
async function decideDurably<T>(tx: Sql, effect: (tx: Sql) => Promise<T>): Promise<Decision<T>> {
  await tx.unsafe('SAVEPOINT effect');
  const decision = await effect(tx).then(
    (done): Decision<T> => ({ effect: done }),
    async (error: unknown): Promise<Decision<T>> => {
      if (!(error instanceof ApiError)) throw error;
      await tx.unsafe('ROLLBACK TO SAVEPOINT effect');
      return { refusal: error };
    },
  );
  await confirmDurable(tx);
  return decision;
}

function effectOf<T>(decision: Decision<T>): T {
  if ('refusal' in decision) throw decision.refusal;
  return decision.effect;
}

/** A change of a resource and how the resource is read: in the transaction of the change, or for a replay. */
export type Change<M extends Message> = {
  /** Writes only through `tx`. @returns the resource's id */
  make: (tx: Sql) => Promise<string>;
  show: (sql: Sql, id: string) => Promise<M>;
};

/** {@link runIdempotently} for changes that return the resource, both the first time and when replayed. */
export function changeOnce<M extends Message>(
  deps: Idempotency,
  call: Call,
  request: Message,
  { make, show }: Change<M>,
): Promise<M> {
  return runIdempotently(deps, call, request, {
    effect: async (tx) => {
      const resourceId = await make(tx);
      return { resourceId, response: await show(tx, resourceId) };
    },
    replay: (id) => show(deps.pool, id),
  });
}

/**
 * Looks up the earlier request made with this idempotency key, trying every secret key. Returns undefined if the call
 * has no key or the key is unused.
 */
export async function findEarlierRequest(
  deps: Idempotency,
  call: Call,
  request: Message,
): Promise<EarlierClaim | undefined> {
  const { idempotencyKey } = call;
  if (idempotencyKey === undefined) return undefined;
  const claim = claimOf(deps, call, idempotencyKey, request);
  // A transaction, so that the wait for its commit ends when the standby is away.
  return deps.pool.begin((tx) => findClaim(tx, claim));
}

/** A request of a batch: its idempotency key, and its hashes under every secret key, the newest first. */
export type KeyedRequest = { key: string; requestHashes: readonly Uint8Array[] };

/** {@link findEarlierRequest} for many requests of a caller at once. Returns the earlier ones by request. */
export async function findEarlierRequests(
  { pool, retentionMs }: Idempotency,
  call: Call,
  requests: readonly KeyedRequest[],
): Promise<Map<KeyedRequest, EarlierClaim>> {
  const holder = holderOf(call);
  return pool.begin((tx) => findClaims(tx, { holder, retentionMs }, requests));
}

/**
 * The hashes of a request of `method` under every secret key, the newest first. `texts`: the JCS of its message without
 * defaults, and of the message as sent if that names some, under which earlier versions recorded it.
 */
export function requestHashes(
  { keys }: Idempotency,
  method: DescMethodUnary,
  texts: readonly string[],
): readonly Uint8Array[] {
  return texts.flatMap((text) => keys.map((key) => requestHmac(key, method, text).digest()));
}

/** The first of {@link requestHashes}, which is stored, in hex. */
export function newRequestHash({ keys }: Idempotency, method: DescMethodUnary, text: string): string {
  return requestHmac(keys[0], method, text).digest('hex');
}

/**
 * The owner of a call's idempotency key: the id of the API key or session, or `admin`. A person's session has keys of its own in
 * each project, so that none outlasts his role there.
 */
export function holderOf({ principal, session }: Call): string {
  if (session?.person !== undefined) return `${session.id} ${session.projectId ?? ''}`;
  return principal?.id ?? session?.id ?? 'admin';
}

function claimOf(deps: Idempotency, call: Call, idempotencyKey: string, request: Message): Claim {
  const { method } = call;
  return {
    holder: holderOf(call),
    key: idempotencyKey,
    requestHashes: requestHashes(deps, method, requestTexts(method, request)),
    retentionMs: deps.retentionMs,
  };
}

function requestTexts({ input }: DescMethodUnary, request: Message): string[] {
  const sent = toJson(input, request) as JsonObject;
  return [...new Set([jcs(withoutDefaults(input, sent)), jcs(sent)])];
}

/** HMAC of an RPC's name and message: the same for every protocol, and reveals nothing of the message. */
function requestHmac({ key }: KeyRing[0], { parent, name }: DescMethodUnary, request: string): Hmac {
  return createHmac('sha256', key).update(`${parent.typeName}/${name}\n${request}`);
}

/** Marks the call as replayed and sets `Idempotent-Replayed` on the response. */
export function markReplayed(call: Call): void {
  call.tally.due = 1;
  call.responseHeaders.set('idempotent-replayed', 'true');
}

/** The error `idempotency.key_reused`. */
export function keyReused(): ApiError {
  return new ApiError(
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    'this idempotency key was used for another request; use a new one',
  );
}
