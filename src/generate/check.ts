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
import { buf, MODULES } from './protos/buf.js';
import { writeThirdPartyProtos } from './protos/third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const LINT = ['--import', 'tsx', 'src/generate/checks/lint-openapi.ts'];

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
  { name: 'the page about errors is up to date', run: checkErrorsPage },
  {
    name: 'the OpenAPI document keeps the lint rules',
    run: () => ({ problem: findProblem(root, 'node', LINT) }),
  },
];

function checkErrorsPage(): Finding {
  const isCurrent = readFileSync(join(root, ERRORS_PAGE), 'utf8') === errorsPage();
  return isCurrent ? {} : { problem: `${ERRORS_PAGE} differs; run "npm run generate"` };
}

writeThirdPartyProtos(root);
if (!runChecks(CHECKS, console.log)) process.exitCode = 1;
