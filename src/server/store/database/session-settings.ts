/** What the settings of a session follow from. */
export type SessionOptions = { statementTimeoutMs: number; isPatient?: boolean; planOnce?: boolean };

/** After so long a transaction that its process does nothing in is ended. */
const IDLE_TRANSACTION_MS = 5_000;

/**
 * What every session of the service is set to, whatever is set for the server, the database or the user: how values are
 * written and read, what a timeout may end, and how statements are planned. In the units of `pg_settings`.
 */
export function sessionSettings(options: SessionOptions): Record<string, string> {
  const { statementTimeoutMs, isPatient = false, planOnce = false } = options;
  return {
    // The driver reads and writes these forms alone.
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
    // A pool closes what it no longer needs; what the server closes is a lost connection.
    idle_session_timeout: '0',
    exit_on_error: 'off',
    // A statement behind a lock must see what the lock's last holder committed.
    default_transaction_isolation: 'read committed',
    default_transaction_deferrable: 'off',
    // Parameters hold metadata, which is in no log and no error.
    log_parameter_max_length_on_error: '0',
    // It costs more than it saves on statements this short.
    jit: 'off',
    plan_cache_mode: planOnce ? 'force_generic_plan' : 'auto',
  };
}
