/** The fourth part of `npm run generate`: rules of Prometheus, dashboard of Grafana, and the tables of the page about them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { DASHBOARD_FILE, dashboardFile } from './monitoring/dashboard/dashboard.js';
import { RULES_FILE, rulesFile } from './monitoring/rules-file.js';
import { MONITORING_PAGE, withTables } from './monitoring/tables.js';

const at = (path: string) => new URL(`../../${path}`, import.meta.url);

writeFileSync(at(RULES_FILE), rulesFile());
writeFileSync(at(DASHBOARD_FILE), dashboardFile());
writeFileSync(at(MONITORING_PAGE), withTables(readFileSync(at(MONITORING_PAGE), 'utf8')));
