import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import '../support/foreign/openssl.js';

t.test('the demo: submit, stop the service, verify offline with three verifiers', async (t) => {
  const demo = fileURLToPath(new URL('./demo.js', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [demo], { encoding: 'utf8' });
  t.equal(status, 0, stderr);
  t.match(stdout, /done: everything verified with the service stopped/);
});
