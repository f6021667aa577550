import { type Alert, ONE_DAY_SECONDS, untilFirst } from './alert.js';

const TUF = (roles: string) =>
  untilFirst(`attest_tuf_expiry_timestamp_seconds{role=~"${roles}"}`, 'job, role');
const ADD_KEY =
  'Add the key that `/readyz` names and restart, or start the [signing process](signing-process.md#when-it-is-away)';

/** About sealing and settling. */
export const LOGS: readonly Alert[] = [
  {
    name: 'AttestLogFrozen',
    expr: 'max by (log) (attest_log_frozen) == 1',
    severity: 'page',
    summary: 'a log is frozen and has no successor: it takes and signs nothing',
    action: '[A frozen log](#a-frozen-log)',
  },
  {
    name: 'AttestAuditAlarm',
    expr: 'max by (job, instance, origin) (attest_audit_open_alarms) > 0',
    severity: 'page',
    summary:
      '`attest audit` has an alarm: a split view, entries that are wrong or gone, a stale or unwitnessed log',
    action: 'Its log and `--evidence` have the alarm: [a monitor](verifying.md#a-monitor)',
  },
  {
    name: 'AttestSignerRejects',
    expr: 'sum by (job, instance, key) (increase(attest_signer_requests_total{outcome="rejected"}[1h])) > 0',
    severity: 'page',
    summary: '`attest signer` was asked for what a key does not sign, such as a second history of a log',
    action:
      'Its log has the reason, `REJECTED`; see who may open its socket: [what a key signs](signing-process.md#what-a-key-signs)',
  },
  {
    name: 'AttestSealingStopped',
    expr:
      'min by (log) (min_over_time(attest_log_unsealed_leaves[5m])) > 0 ' +
      'and on (log) max by (log) (delta(attest_log_sealed_leaves[5m])) == 0 ' +
      'unless on (log) max by (log) (attest_log_frozen) == 1',
    for: '5m',
    severity: 'page',
    summary: 'leaves wait, and no batch has been sealed for ten minutes',
    action:
      "The workers' `/readyz` has the reason. With a `BATCH_INTERVAL` above five minutes raise the times",
  },
  {
    name: 'AttestLogKeyUnavailable',
    expr: 'max by (log) (attest_log_key_ready{algorithm="ed25519"}) == 0',
    for: '2m',
    severity: 'page',
    summary: 'no worker can sign the checkpoints of a log: nothing is sealed',
    action: ADD_KEY,
  },
  {
    name: 'AttestLogKeyMissing',
    expr: 'attest_log_key_ready == 0',
    for: '10m',
    severity: 'ticket',
    summary: 'a worker lacks a key of a log; without `ml-dsa-44` checkpoints lack the second signature',
    action: ADD_KEY,
  },
  {
    name: 'AttestRegisterBehind',
    expr: 'min by (log) (min_over_time(attest_batches_unpublished[5m])) > 0',
    severity: 'page',
    summary: 'for five minutes there has been a sealed batch whose root is not in the checkpoint register',
    action:
      "The register cannot be written (the worker's `/readyz`), or was lost: [backup](operating.md#backup)",
  },
  {
    name: 'AttestLogStorageBehind',
    expr:
      'max by (log) (attest_log_stored_size) ' +
      '< on (log) max by (log) (attest_log_sealed_leaves offset 5m) ' +
      'unless on (log) min by (log) (min_over_time(attest_batches_unpublished[5m])) > 0',
    for: '5m',
    severity: 'ticket',
    summary: 'what was published ten minutes ago is not in `LOG_STORAGE`',
    action:
      'Workers log why: `LOG_STORAGE is not written`; `attest doctor` tries it. A store that is new is filled first',
  },
  {
    name: 'AttestBatchesUnsettled',
    expr: 'max by (log) (attest_batches_oldest_unsettled_seconds) > 3600',
    for: '5m',
    severity: 'ticket',
    summary: 'a batch was sealed an hour ago and is not witnessed',
    action: '[A failing witness](#a-failing-witness). With witnesses that take longer raise the time',
  },
];

/** About witnesses and trust roots. */
export const WITNESSES: readonly Alert[] = [
  {
    name: 'AttestWitnessAlarm',
    expr: 'sum by (witness) (increase(attest_witness_alarms_total[1h])) > 0',
    severity: 'page',
    summary: 'a witness contradicts the log, or evidence was lost from a chain',
    action:
      'Stop the workers and compare checkpoints ([C2SP witnesses](witnesses.md#c2sp-witnesses)); of a chain: [reorganised](#a-chain-that-was-reorganised)',
  },
  {
    name: 'AttestWitnessFailing',
    expr: 'max by (log, witness) (attest_witness_consecutive_failures) >= 5',
    for: '5m',
    severity: 'ticket',
    summary: 'a witness has failed five times in a row',
    action: '[A failing witness](#a-failing-witness)',
  },
  {
    name: 'AttestWitnessRequestOld',
    expr: `time() - min by (log, witness) (attest_witness_oldest_request_timestamp_seconds) > ${ONE_DAY_SECONDS}`,
    for: '5m',
    severity: 'ticket',
    summary: 'a witness accepted a request a day ago and has not fulfilled it',
    action: '`attest witnesses list` has the reason',
  },
  {
    name: 'AttestTufOutdated',
    expr: 'max by (job) (attest_tuf_outdated) == 1',
    for: '1h',
    severity: 'ticket',
    summary: 'the TUF repository differs from the trust roots',
    action: '[`attest tuf publish`](tuf.md)',
  },
  {
    name: 'AttestTufRootExpires',
    expr: `${TUF('root|targets')} < ${60 * ONE_DAY_SECONDS}`,
    severity: 'ticket',
    summary: 'root or targets of the TUF repository expire within 60 days',
    action: '[`attest tuf publish`](tuf.md)',
  },
  {
    name: 'AttestTufSnapshotExpires',
    expr: `${TUF('snapshot|timestamp')} < ${3 * ONE_DAY_SECONDS}`,
    severity: 'page',
    summary: 'snapshot or timestamp of the TUF repository expire within three days',
    action: 'No worker has the online key: [TUF](tuf.md)',
  },
];
