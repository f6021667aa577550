/** The lines of docs/first-hour.md, typed into a shell: from a Postgres and a NATS to a witnessed submission. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { typeLines } from '../support/calling/type-lines.js';
import { findFreePort } from '../support/servers/free-port.js';
import { makeInstallation } from '../support/servers/installation.js';
import { codeBlocks } from '../support/source/pages.js';
import { startFaultTsa } from '../support/witnesses/fault-tsa.js';

const PAGE = 'docs/first-hour.md';

t.test('the lines of the page', async (t) => {
  const [lines = '', ...others] = await codeBlocks(PAGE, 'sh');
  t.same(others, []);
  t.match(await readFile(PAGE, 'utf8'), `in ${lines.trim().split('\n').length} lines.`);
  const dir = t.testdir();
  const tsa = await startFaultTsa(t);
  await writeFile(join(dir, 'tsa-chain.pem'), tsa.chainPem);
  const { env } = await makeInstallation(t);
  const [port, opsPort] = [String(await findFreePort()), String(await findFreePort())];
  const { stdout, stderr, code } = await typeLines(lines, {
    dir,
    own: {
      'postgres://attest:secret@db.example.com/attest': env.DATABASE_URL ?? '',
      'nats://nats.example.com:4222': env.NATS_URL ?? '',
      'https://attest.example.com': `http://127.0.0.1:${port}`,
      '/var/lib/attest/register': join(dir, 'register'),
      'https://tsa.example.com': tsa.url,
      'http://127.0.0.1:8080': `http://127.0.0.1:${port}`,
      '--ops-port 9091': '--ops-port 0',
    },
    env: {
      DATA_DIR: join(dir, 'data'),
      PORT: port,
      OPS_PORT: opsPort,
      ALLOW_INSECURE_DESTINATIONS: 'true',
    },
  });
  t.equal(code, 0, stderr.slice(-2_000));
  t.match(stdout, /^ok +nats /m, 'the doctor has looked');
  t.notMatch(stdout, /^failed /m);
  t.match(stdout, /existed no later than .* according to tsa\.$/m);
});
