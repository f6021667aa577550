/** The alerts, for the Prometheus rules and the table of docs/monitoring.md. */
import type { Alert } from './alert.js';
import { DELIVERY } from './delivery-alerts.js';
import { LOGS, WITNESSES } from './log-alerts.js';
import { PROCESSES, SERVERS } from './process-alerts.js';

/** By what fails. */
export const ALERT_GROUPS: Readonly<Record<string, readonly Alert[]>> = {
  processes: PROCESSES,
  servers: SERVERS,
  logs: LOGS,
  witnesses: WITNESSES,
  delivery: DELIVERY,
};
