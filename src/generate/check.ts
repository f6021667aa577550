/** The part of `npm run check` that is about protos: form, rules, compatibility, and generated code up to date. */
import { fileURLToPath } from 'node:url';
import { buf, MODULES } from './buf.js';
import { checkBreaking } from './check-breaking.js';
import { checkGenerated } from './check-generated.js';
import { type Check, runChecks } from './run-checks.js';
import { writeThirdPartyProtos } from './third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const CHECKS: readonly Check[] = [
  ...MODULES.map((folder) => ({
    name: `${folder} is formatted`,
    run: () => ({ problem: buf(root, 'format', '--diff', '--exit-code', folder) }),
  })),
  { name: 'protos keep the lint rules', run: () => ({ problem: buf(root, 'lint') }) },
  { name: 'protos break no client', run: (scratch) => checkBreaking({ root, scratch }) },
  { name: 'generated code is up to date', run: (scratch) => checkGenerated({ root, scratch }) },
];

writeThirdPartyProtos(root);
if (!runChecks(CHECKS, console.log)) process.exitCode = 1;
