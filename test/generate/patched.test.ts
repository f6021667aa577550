/** The program is bundled with the patched driver only. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { assertPatched } from '../../src/generate/bundle/patched.js';

const PATCHES = 'src/server/database/patches';
const DRIVER = 'node_modules/postgres/src/connection.js';

function findRoot(): string {
  let root = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(root, 'package.json'))) root = dirname(root);
  return root;
}

t.test('the installed driver has the patch', async () => assertPatched(findRoot(), PATCHES));

t.test('a driver without the patch, or with a part of it, is an error', async (t) => {
  const root = t.testdir();
  cpSync(join(findRoot(), PATCHES), join(root, PATCHES), { recursive: true });
  mkdirSync(dirname(join(root, DRIVER)), { recursive: true });
  const installed = readFileSync(join(findRoot(), DRIVER), 'utf8');
  const check = (text: string) => {
    writeFileSync(join(root, DRIVER), text);
    return () => assertPatched(root, PATCHES);
  };
  t.doesNotThrow(check(installed));
  const message = /connection\.js lacks postgres\+3\.4\.9\.patch.*: run npm ci/;
  t.throws(check(installed.replace('execute).catch(() => (needsTypes = true, []))', 'execute)')), {
    message,
  });
  t.throws(check(installed.replace("    socket.on('error', noop)\n", '')), { message });
  const bundle = readFileSync(join(findRoot(), 'src/generate/bundle-program.ts'), 'utf8');
  t.match(bundle, 'assertPatched(root,', 'the bundle step calls it');
});
