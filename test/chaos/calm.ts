/** After the last fault: everything that is under way must come to its end by itself, within a bound. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Creator } from './clients/creations.js';
import type { Scene } from './scene/scene.js';

/** How long it may take until every batch is witnessed and every event delivered. */
const BOUND_MS = 180_000;
const POLL_MS = 500;

/** What is still under way. */
type Left = { unsealed: number; unsettled: number; events: number };

/**
 * Waits for it. A creation now and then keeps the witnesses asked. Deliveries that wait for a later attempt, of minutes
 * or hours by the schedule, are made due once: their schedule is not what is tested.
 *
 * @returns how long it took, and what is left if that was too long
 */
export async function calmDown(
  scene: Scene,
  creator: Creator,
  progress: (left: string) => void,
): Promise<{ ms: number; left: Left | undefined }> {
  const begun = performance.now();
  for (let last = 0; ; ) {
    const ms = performance.now() - begun;
    const left = await findLeft(scene);
    if (left.unsealed + left.unsettled + left.events === 0) return { ms: Math.round(ms), left: undefined };
    if (ms > BOUND_MS) return { ms: Math.round(ms), left };
    progress(
      `${left.unsealed} leaves to seal, ${left.unsettled} batches to witness, ${left.events} events to deliver`,
    );
    if (ms - last > 5_000 && left.unsealed === 0 && left.unsettled > 0) {
      last = ms;
      for (const owner of scene.owners.slice(1)) await creator.create(creator.newCreation(owner));
    }
    await makeDue(scene);
    await delay(POLL_MS);
  }
}

async function findLeft(scene: Scene): Promise<Left> {
  return scene.withDatabase(async (sql) => {
    const [left] = await sql<Left[]>`
      SELECT (SELECT count(*)::int FROM submission s WHERE s.log_index >= coalesce((
                SELECT max(b.tree_size) FROM batch b WHERE b.log_id = s.log_id), 0)) AS unsealed,
             (SELECT count(*)::int FROM batch WHERE status <> 2 OR registered_at IS NULL) AS unsettled,
             (SELECT count(*)::int FROM batch_transition WHERE NOT notified)
               + (SELECT count(*)::int FROM webhook_range)
               + (SELECT count(*)::int FROM webhook_delivery WHERE status = 1) AS events`;
    return left!;
  });
}

/** Only what waits for longer than a minute: what is under way is left alone. */
async function makeDue(scene: Scene): Promise<void> {
  await scene.withDatabase(async (sql) => {
    await sql`
      UPDATE webhook_delivery SET next_attempt_at = clock_timestamp()
      WHERE status = 1 AND next_attempt_at > clock_timestamp() + interval '60 seconds'`;
    await sql`
      UPDATE webhook w SET due_at = clock_timestamp() WHERE w.due_at > clock_timestamp() + interval '5 seconds'`;
  });
}
