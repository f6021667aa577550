import { type Alert, ONE_DAY_SECONDS, untilFirst } from './alert.js';

const ANY_PROCESS = '(attest_accept_queued_submissions or attest_export_spool_bytes)';
const CERTIFICATE = untilFirst('attest_certificate_expiry_timestamp_seconds', 'job, certificate');
const REPLACE_CERTIFICATE = "Replace it; SIGHUP reads TLS files again, a witness's chain needs a restart";

/** About processes, their clocks and certificates. */
export const PROCESSES: readonly Alert[] = [
  {
    name: 'AttestApiDown',
    expr: 'absent(attest_accept_queued_submissions)',
    for: '1m',
    severity: 'page',
    summary: 'no API process answers Prometheus',
    action: 'Start one; the last lines of its log say why it ended',
  },
  {
    name: 'AttestWorkerDown',
    expr: 'absent(attest_export_spool_bytes)',
    for: '2m',
    severity: 'page',
    summary: 'no worker answers Prometheus: nothing is sealed or witnessed',
    action: 'Start one; the last lines of its log say why it ended. What is submitted meanwhile is kept',
  },
  {
    name: 'AttestProcessDown',
    expr: 'up == 0 and on (job, instance) last_over_time(attest_build_info[1d])',
    for: '2m',
    severity: 'ticket',
    summary: 'a process that answered Prometheus within a day does not any more',
    action: 'See the last lines of its log, and `/livez`',
  },
  {
    name: 'AttestApiProcessDied',
    expr: 'sum by (job, instance) (increase(attest_api_processes_died_total[15m])) > 0',
    severity: 'ticket',
    summary: 'one of the API processes that share a port ended by itself, and was started again',
    action: "See the last log lines, by `api_pid` of `an API process died`, and the kernel's log",
  },
  {
    name: 'AttestApiProcessMissing',
    expr: 'attest_api_processes_ready < max_over_time(attest_api_processes_ready[1d])',
    for: '5m',
    severity: 'ticket',
    summary: 'fewer API processes serve a port than within a day',
    action: 'See the log, by `api_pid`',
  },
  {
    name: 'AttestClockOff',
    expr: 'abs(attest_clock_offset_seconds) > 5',
    for: '1m',
    severity: 'page',
    summary:
      "an API process's clock and the database's differ by more than five seconds: it accepts no submission",
    action: '[Clocks](#clocks)',
  },
  {
    name: 'AttestClockDrifts',
    expr: 'abs(attest_clock_offset_seconds) > 1',
    for: '10m',
    severity: 'ticket',
    summary: "an API process's clock and the database's differ by more than a second",
    action: '[Clocks](#clocks)',
  },
  {
    name: 'AttestCertificateExpires',
    expr: `${CERTIFICATE} < ${14 * ONE_DAY_SECONDS}`,
    severity: 'ticket',
    summary: 'a certificate that is served, or that a witness is held to, expires within 14 days',
    action: REPLACE_CERTIFICATE,
  },
  {
    name: 'AttestCertificateExpiresSoon',
    expr: `${CERTIFICATE} < ${2 * ONE_DAY_SECONDS}`,
    severity: 'page',
    summary: 'a certificate that is served, or that a witness is held to, expires within two days',
    action: REPLACE_CERTIFICATE,
  },
];

/** About Postgres and NATS. */
export const SERVERS: readonly Alert[] = [
  {
    name: 'AttestDatabaseDown',
    expr: `${ANY_PROCESS} unless on (job, instance) attest_log_frozen`,
    for: '2m',
    severity: 'page',
    summary: 'a process gets no answer from Postgres',
    action: '[Postgres is down](#postgres-is-down)',
  },
  {
    name: 'AttestStandbyAway',
    expr: 'max by (job) (attest_database_standby_away) == 1',
    for: '1m',
    severity: 'page',
    summary: "Postgres's synchronous standby does not answer: nothing is stored",
    action:
      'Bring it back, or take it out of `synchronous_standby_names`; a [failover](operating.md#failover) then loses submissions',
  },
  {
    name: 'AttestPoolExhausted',
    expr: 'attest_pool_waiting > 0',
    for: '5m',
    severity: 'ticket',
    summary: 'statements wait for a connection to Postgres',
    action: 'Postgres is slow, or raise `PG_POOL`',
  },
  {
    name: 'AttestWritesQueue',
    expr: 'attest_accept_queued_submissions > 1000',
    for: '2m',
    severity: 'ticket',
    summary: 'more than 1,000 submissions wait for the write in progress',
    action: "Commits are slow; see Postgres's disk and its standby",
  },
  {
    name: 'AttestJetStreamDown',
    expr: 'attest_jetstream_up == 0',
    for: '5m',
    severity: 'ticket',
    summary: 'NATS is down or has no majority',
    action: 'Start it. Nothing is lost, only slower',
  },
];
