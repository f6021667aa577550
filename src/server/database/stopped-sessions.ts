import type { Sql } from './connect.js';
import { IDLE_TRANSACTION_MS } from './session-settings.js';

/**
 * Ends the service's sessions whose process has stopped within a statement: the driver sends one that is new to a connection
 * in two parts, and Postgres waits for the second with the locks of the transaction. `statement_timeout` does not end that
 * wait, nor does `idle_in_transaction_session_timeout`; `transaction_timeout` (PostgreSQL 17) would end long ones too.
 *
 * @returns the names of their pools
 */
export async function endStoppedSessions(sql: Sql): Promise<string[]> {
  // Materialized: else Postgres ends sessions before it compares what costs more, such as their age.
  const rows = await sql<{ name: string }[]>`
    WITH stopped AS MATERIALIZED (
      SELECT pid, application_name AS name FROM pg_stat_activity
      WHERE datname = current_database() AND usename = current_user
        AND application_name ~ '^attest (accept|api|exports|webhooks|worker)$'
        AND state = 'active' AND wait_event_type = 'Client' AND wait_event = 'ClientRead'
        AND state_change < clock_timestamp() - ${IDLE_TRANSACTION_MS}::integer * interval '1 millisecond')
    SELECT name FROM stopped WHERE pg_terminate_backend(pid)`;
  return rows.map(({ name }) => name);
}
