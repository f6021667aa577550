import { setTimeout as delay } from 'node:timers/promises';
import type { Message } from '@bufbuild/protobuf';
import type { Call } from '../core/call.js';
import { idempotencyInProgress } from '../core/errors.js';
import { type Change, changeOnce, findEarlierRequest, holderOf, type Idempotency } from './idempotency.js';
import { releaseKeyLease, takeKeyLease } from './idempotency-leases.js';

/** A change that begins outside the database. `prepare` may take seconds; if it throws, nothing was changed. */
type PreparedChange<M extends Message> = Change<M> & { prepare: () => Promise<void> };

const WAIT_MS = 5_000;
const RETRY_MS = 100;
/** Longer than any `prepare`: a key is free again after this if its process was killed. */
const LEASE_MS = 60_000;

/**
 * {@link changeOnce} after `prepare`, which runs at most once at a time per idempotency key and not for a replay. Throws
 * `idempotency.in_progress` if a call with the same key takes longer than 5 s.
 */
export async function changeOnceAfter<M extends Message>(
  deps: Idempotency,
  call: Call,
  request: Message,
  { prepare, ...change }: PreparedChange<M>,
): Promise<M> {
  const { idempotencyKey: key } = call;
  const holder = holderOf(call);
  const deadline = deps.clock() + WAIT_MS;
  for (;;) {
    if ((await findEarlierRequest(deps, call, request)) !== undefined)
      return changeOnce(deps, call, request, change);
    if (key === undefined || (await deps.pool.begin((tx) => takeKeyLease(tx, holder, key, LEASE_MS)))) break;
    if (deps.clock() >= deadline) throw idempotencyInProgress();
    await delay(RETRY_MS);
  }
  try {
    await prepare();
    return await changeOnce(deps, call, request, change);
  } finally {
    // It expires by itself.
    if (key !== undefined) await deps.pool.begin((tx) => releaseKeyLease(tx, holder, key)).catch(() => {});
  }
}
