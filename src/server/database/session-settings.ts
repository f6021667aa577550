/** The options that determine a session's settings. */
export type SessionOptions = {
  statementTimeoutMs: number;
  isPatient?: boolean;
  planOnce?: boolean;
  commitsLocally?: boolean;
};

/** Postgres ends a transaction that is idle for this long, and a worker a session that has stopped within a statement. */
export const IDLE_TRANSACTION_MS = 3_500;

/**
 * Returns the settings of every session, which override those of the server, the database and the user: formats of
 * values, timeouts, planning. In the units of `pg_settings`.
 */
export function sessionSettings(options: SessionOptions): Record<string, string> {
  const { statementTimeoutMs, isPatient = false, planOnce = false, commitsLocally = false } = options;
  return {
    // The driver reads and writes only these formats.
    client_encoding: 'UTF8',
    bytea_output: 'hex',
    DateStyle: 'ISO, MDY',
    IntervalStyle: 'postgres',
    TimeZone: 'UTC',
    extra_float_digits: '1',
    standard_conforming_strings: 'on',
    array_nulls: 'on',
    transform_null_equals: 'off',
    statement_timeout: String(statementTimeoutMs),
    lock_timeout: '0',
    idle_in_transaction_session_timeout: String(isPatient ? statementTimeoutMs : IDLE_TRANSACTION_MS),
    // The pool closes idle connections. One that the server closes counts as lost.
    idle_session_timeout: '0',
    exit_on_error: 'off',
    // A cancelled wait for the standby is reported by a warning only.
    client_min_messages: 'warning',
    // A statement that waited for a lock must see what the last holder committed.
    default_transaction_isolation: 'read committed',
    default_transaction_deferrable: 'off',
    // Parameters contain metadata, which must not reach logs or errors.
    log_parameter_max_length_on_error: '0',
    // Takes longer than it saves on statements this short.
    jit: 'off',
    plan_cache_mode: planOnce ? 'force_generic_plan' : 'auto',
    ...(commitsLocally && { synchronous_commit: 'local' }),
  };
}
