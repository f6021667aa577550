import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { writeThirdPartyProtos } from './third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
writeThirdPartyProtos(root);
for (const template of ['buf.gen.yaml', 'test/buf.gen.yaml']) {
  execFileSync('npx', ['buf', 'generate', '--template', template], { cwd: root, stdio: 'inherit' });
}
