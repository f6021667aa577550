import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import t from 'tap';

t.test('the demo: submit, stop the service, verify offline with three verifiers', async (t) => {
  const demo = fileURLToPath(
    new URL('../../dist/test/e2e/demo.js', import.meta.url).href.replace('/dist/dist/', '/dist/'),
  );
  const { status, stdout, stderr } = spawnSync(process.execPath, [demo], { encoding: 'utf8' });
  t.equal(status, 0, stderr);
  t.match(stdout, /done: everything verified with the service stopped/);
});
