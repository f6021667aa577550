/** The checks of protos and generated files in `npm run check`: format, lint, compatibility, up to date. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PAGES } from './bundle/web-page.js';
import { checkBreaking } from './checks/check-breaking.js';
import { checkGenerated } from './checks/check-generated.js';
import { type Finding, findProblem } from './checks/finding.js';
import { type Check, runChecks } from './checks/run-checks.js';
import { ERRORS_PAGE, errorsPage } from './errors-page.js';
import { DASHBOARD_FILE, dashboardFile } from './monitoring/dashboard/dashboard.js';
import { RULES_FILE, rulesFile } from './monitoring/rules-file.js';
import { MONITORING_PAGE, withTables } from './monitoring/tables.js';
import { buf, MODULES } from './protos/buf.js';
import { writeThirdPartyProtos } from './protos/third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const LINT = ['--import', 'tsx', 'src/generate/checks/lint-openapi.ts'];

/** The files that `npm run generate` writes, whole or in part. */
const WRITTEN: readonly { path: string; write: (page: string) => string }[] = [
  { path: ERRORS_PAGE, write: errorsPage },
  { path: MONITORING_PAGE, write: withTables },
  { path: RULES_FILE, write: rulesFile },
  { path: DASHBOARD_FILE, write: dashboardFile },
];

const CHECKS: readonly Check[] = [
  ...PAGES.map(({ name }) => ({
    name: `the page ${name} compiles`,
    run: () => ({ problem: findProblem(root, 'node_modules/.bin/tsc', ['-p', `src/web/${name}`]) }),
  })),
  {
    name: 'imports keep to the ranks of the rooms',
    run: () => ({ problem: findProblem(root, 'node_modules/.bin/depcruise', ['src']) }),
  },
  {
    name: 'no file, export or dependency is unused',
    run: () => ({ problem: findProblem(root, 'node_modules/.bin/knip', []) }),
  },
  ...MODULES.map((folder) => ({
    name: `${folder} is formatted`,
    run: () => ({ problem: buf(root, 'format', '--diff', '--exit-code', folder) }),
  })),
  { name: 'protos keep the lint rules', run: () => ({ problem: buf(root, 'lint') }) },
  { name: 'protos break no client', run: (scratch) => checkBreaking({ root, scratch }) },
  { name: 'generated code is up to date', run: (scratch) => checkGenerated({ root, scratch }) },
  ...WRITTEN.map(({ path, write }) => ({
    name: `${path} is up to date`,
    run: () => checkWritten(path, write),
  })),
  {
    name: 'the OpenAPI document keeps the lint rules',
    run: () => ({ problem: findProblem(root, 'node', LINT) }),
  },
];

function checkWritten(path: string, write: (page: string) => string): Finding {
  const page = readFileSync(join(root, path), 'utf8');
  return page === write(page) ? {} : { problem: `${path} differs; run "npm run generate"` };
}

writeThirdPartyProtos(root);
if (!runChecks(CHECKS, console.log)) process.exitCode = 1;
