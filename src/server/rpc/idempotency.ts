import { createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Message, toJson } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { jcs } from '../../proof/bytes/jcs.js';
import type { Call } from '../core/call.js';
import { ApiError, idempotencyInProgress } from '../core/errors.js';
import type { KeyRing } from '../keys/key-ring.js';
import type { Pool, Sql } from '../store/database/connect.js';
import { type Claim, type EarlierClaim, findClaim, runClaimed } from '../store/idempotency.js';

/** What mutating handlers need to honour `Idempotency-Key`. */
export type Idempotency = {
  pool: Pool;
  /** Sub-keys for hashing requests; the first is used, the others are known. */
  keys: KeyRing;
  retentionMs: number;
  /** Monotonic milliseconds. */
  clock: () => number;
};

/** What an RPC does once, and how it answers when that was done before. */
export type Once<M extends Message> = {
  /** Writes through `tx` alone; what it throws is told to the caller and undoes everything, the claim included. */
  effect: (tx: Sql) => Promise<{ resourceId: string; response: M }>;
  /** The resource as it now stands, as the first call would be answered now. */
  replay: (resourceId: string) => Promise<M>;
};

const PATIENCE_MS = 5_000;
const RETRY_MS = 20;

/**
 * Runs the effect of a mutating RPC in a transaction, and once only for the call's idempotency key, if it has one: a
 * later call with the same key and message gets the resource again and `Idempotent-Replayed`. Commit point: that of
 * the transaction, which holds effect and claim. Throws `idempotency.key_reused` for another message under the same
 * key, and `idempotency.in_progress` when one with the same key is under way for longer than 5 s.
 *
 * @param request the message as it was received
 */
export async function idempotently<M extends Message>(
  deps: Idempotency,
  call: Call,
  request: Message,
  { effect, replay }: Once<M>,
): Promise<M> {
  if (call.idempotencyKey === undefined) return (await deps.pool.begin(effect)).response;
  const claim = claimOf(deps, call, call.idempotencyKey, request);
  const deadline = deps.clock() + PATIENCE_MS;
  for (;;) {
    const claimed = await runClaimed(deps.pool, claim, effect);
    if (claimed.outcome === 'done') return claimed.effect.response;
    if (claimed.outcome === 'reused') throw keyReused();
    if (claimed.outcome === 'replayed') {
      noteReplay(call);
      return replay(claimed.resourceId);
    }
    if (deps.clock() >= deadline) throw idempotencyInProgress();
    await delay(RETRY_MS);
  }
}

/** A change of a resource, and how that is shown: in the change's transaction, or when the call is replayed. */
export type Change<M extends Message> = {
  /** Writes through `tx` alone. @returns the resource's id */
  make: (tx: Sql) => Promise<string>;
  show: (sql: Sql, id: string) => Promise<M>;
};

/** {@link idempotently} for what is answered with the resource as it stands, the first time and whenever replayed. */
export function changeOnce<M extends Message>(
  deps: Idempotency,
  call: Call,
  request: Message,
  { make, show }: Change<M>,
): Promise<M> {
  return idempotently(deps, call, request, {
    effect: async (tx) => {
      const resourceId = await make(tx);
      return { resourceId, response: await show(tx, resourceId) };
    },
    replay: (id) => show(deps.pool, id),
  });
}

/** What stands under the call's idempotency key, whichever of the secret keys it was hashed with; undefined without. */
export async function findEarlier(
  deps: Idempotency,
  call: Call,
  request: Message,
): Promise<EarlierClaim | undefined> {
  const { idempotencyKey } = call;
  if (idempotencyKey === undefined) return undefined;
  return findClaim(deps.pool, claimOf(deps, call, idempotencyKey, request));
}

function claimOf(
  { keys, retentionMs }: Idempotency,
  call: Call,
  idempotencyKey: string,
  request: Message,
): Claim {
  return {
    holder: call.principal?.apiKeyId ?? 'admin',
    key: idempotencyKey,
    requestHashes: keys.map((key) => requestHash(key, call, request)),
    retentionMs,
  };
}

/** The keyed hash of an RPC's name and its message, the same on every surface; it tells nothing of the body. */
export function requestHash({ key }: KeyRing[0], { method }: Call, request: Message): Buffer {
  return createHmac('sha256', key)
    .update(`${method.parent.typeName}/${method.name}\n${jcs(toJson(method.input, request))}`)
    .digest();
}

/** Says in the answer's headers that nothing was done anew. */
export function noteReplay(call: Call): void {
  call.responseHeaders.set('idempotent-replayed', 'true');
}

/** The error of a key that another request was made with. */
export function keyReused(): ApiError {
  return new ApiError(
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    'this idempotency key was used for another request; use a new one',
  );
}
