import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { writeThirdPartyProtos } from './third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
writeThirdPartyProtos(root);
execFileSync('npx', ['buf', 'generate'], { cwd: root, stdio: 'inherit' });
