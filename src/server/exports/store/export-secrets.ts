import { ExportStatus } from '../../../../gen/attestation/v1/exports_pb.js';
import type { Sql } from '../../database/connect.js';

/** The encrypted secrets of an export. */
type ExportSecrets = { id: string; secrets: Uint8Array };

/** Lists the secrets of exports that are not stopped, under other keys than `keyId`. */
export async function listSecretsUnderOtherKeys(sql: Sql, keyId: string): Promise<ExportSecrets[]> {
  return sql<ExportSecrets[]>`
    SELECT id, secrets FROM export
    WHERE status <> ${ExportStatus.STOPPED} AND CASE WHEN length(secrets) > 1
      THEN convert_from(substring(secrets FROM 3 FOR get_byte(secrets, 1)), 'LATIN1') <> ${keyId} END
    ORDER BY id`;
}

/** Replaces the secrets of an export by others, unless they have changed or were erased. */
export async function replaceSecrets(
  sql: Sql,
  { id, secrets }: ExportSecrets,
  others: Uint8Array,
): Promise<void> {
  await sql`UPDATE export SET secrets = ${others} WHERE id = ${id} AND secrets = ${secrets}`;
}
