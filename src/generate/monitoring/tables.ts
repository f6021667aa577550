import type { Alert } from './alerts/alert.js';
import { ALERT_GROUPS } from './alerts/alert-groups.js';
import { BURN_ALERTS, OBJECTIVES } from './objectives.js';

/** The page with the tables, from the root of the repository. */
export const MONITORING_PAGE = 'docs/monitoring.md';

/** The page with its tables of objectives and alerts made anew. Throws if it lacks the place of one. */
export function withTables(page: string): string {
  return replaceTable(replaceTable(page, 'objectives', objectivesTable()), 'alerts', alertsTable());
}

/** A table is between two comments, which no reader of the page sees. */
function replaceTable(page: string, name: string, table: string): string {
  const start = `<!-- ${name}, written by npm run generate -->\n`;
  const end = `<!-- end of ${name} -->`;
  const [before, after] = [page.indexOf(start), page.indexOf(end)];
  if (before < 0 || after < before) throw new Error(`the page has no place for the table of ${name}`);
  return page.slice(0, before + start.length) + table + page.slice(after);
}

function objectivesTable(): string {
  const rows = OBJECTIVES.map(({ slo, promise, share }) => {
    const percent = Number((share * 100).toFixed(3));
    return `| \`${slo}\` | ${percent} % | ${promise} |\n`;
  });
  return `| \`slo\` | over 30 days | of |\n|---|---|---|\n${rows.join('')}`;
}

function alertsTable(): string {
  const alerts = [...BURN_ALERTS, ...Object.values(ALERT_GROUPS).flat()];
  return `| alert | severity | when | what to do |\n|---|---|---|---|\n${alerts.map(row).join('')}`;
}

function row({ name, severity, summary, action, ...alert }: Alert): string {
  const when = alert.for === undefined ? summary : `${summary} (${alert.for})`;
  return `| ${name} | ${severity} | ${when} | ${action} |\n`;
}
