import { stringify } from 'yaml';
import type { Alert } from './alerts/alert.js';
import { ALERT_GROUPS } from './alerts/alert-groups.js';
import { BURN_ALERTS, recordingRules } from './objectives.js';

/** Where the rules are, from the root of the repository. */
export const RULES_FILE = 'deploy/prometheus/attest.rules.yaml';

const HEAD = `# Written by "npm run generate" from src/generate/monitoring/. docs/monitoring.md says how to load and change it.
`;
const PAGE = 'docs/monitoring.md';

/** The rules of Prometheus, in YAML. */
export function rulesFile(): string {
  const groups = [
    // One group, in which rules are evaluated in their order.
    { name: 'attest-objectives', rules: [...recordingRules('alerts'), ...BURN_ALERTS.map(alertingRule)] },
    { name: 'attest-objectives-month', interval: '5m', rules: recordingRules('month') },
    ...Object.entries(ALERT_GROUPS).map(([name, alerts]) => ({
      name: `attest-${name}`,
      rules: alerts.map(alertingRule),
    })),
  ];
  return HEAD + stringify({ groups }, { lineWidth: 0 });
}

function alertingRule({ name, expr, severity, summary, action, ...alert }: Alert) {
  return {
    alert: name,
    expr,
    ...(alert.for === undefined ? {} : { for: alert.for }),
    labels: { severity },
    annotations: {
      summary: plain(summary),
      description: plain(action),
      runbook: `${PAGE}#${/\]\(#([\w-]+)\)/.exec(action)?.[1] ?? 'alerts'}`,
    },
  };
}

/** A text of Markdown without links and code marks. */
function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
}
