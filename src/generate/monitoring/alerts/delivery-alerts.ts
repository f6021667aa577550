import type { Alert } from './alert.js';

/** About webhooks and exports. */
export const DELIVERY: readonly Alert[] = [
  {
    name: 'AttestWebhooksLate',
    expr: 'max by (job) (attest_webhook_oldest_due_seconds) > 600',
    for: '5m',
    severity: 'ticket',
    summary: 'a delivery to a webhook has been due for ten minutes',
    action: 'See `attest webhooks deliveries`; add workers',
  },
  {
    name: 'AttestWebhookDisabled',
    expr: 'sum by (job) (increase(attest_webhooks_disabled_total[1h])) > 0',
    severity: 'ticket',
    summary: 'a subscription was disabled: 410, or five days of failures',
    action: 'The subscription has the reason; its owner enables it again',
  },
  {
    name: 'AttestExportFailing',
    expr: 'max by (job) (attest_exports_failing) > 0',
    severity: 'ticket',
    summary: 'an export has failed for 24 hours',
    action: '`attest exports list --all-projects --failed` has `last_error` for its owner',
  },
  {
    name: 'AttestExportsLate',
    expr: 'max by (job) (attest_export_lag_seconds) > 3600',
    for: '5m',
    severity: 'ticket',
    summary: 'a settled batch has waited for an hour to be shipped',
    action: '`attest exports get` has the reason, or add workers',
  },
];
