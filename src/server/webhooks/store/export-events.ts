import type { Sql } from '../../database/connect.js';

/** An event about an export: a proto EventType number and its data as JSON. */
type ExportEvent = { exportId: string; type: number; data: string };

/**
 * The status number that deliveries of these events have in place of a batch's transition: they are retried as others are,
 * and a test, which has none, is not.
 */
const NO_TRANSITION = 0;

/**
 * Inserts an event for each active subscription to it, due at once. Runs in the transaction of what happened.
 *
 * @returns the ids of the subscriptions
 */
export async function insertExportEvent(
  tx: Sql,
  { projectId, environment }: { projectId: string; environment: number },
  { exportId, type, data }: ExportEvent,
  newDeliveryId: () => string,
): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    SELECT id FROM webhook
    WHERE project_id = ${projectId} AND environment = ${environment} AND status = 1 AND ${type} = ANY (events)
    ORDER BY id FOR UPDATE`;
  for (const { id } of rows) {
    await tx`
      INSERT INTO webhook_delivery (webhook_id, id, transition, export_id, detail)
      VALUES (${id}, ${newDeliveryId()}, ${NO_TRANSITION}, ${exportId}, ${data})`;
    await tx`UPDATE webhook SET due_at = clock_timestamp() WHERE id = ${id}`;
  }
  return rows.map(({ id }) => id);
}
