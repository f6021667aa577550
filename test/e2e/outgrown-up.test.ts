/** The lines of docs/deploy.md that make processes of their own of an `attest up`, typed into a shell. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { typeLines } from '../support/calling/type-lines.js';
import { findFreePort } from '../support/servers/free-port.js';
import { makeInstallation } from '../support/servers/installation.js';
import { startPrivatePostgres } from '../support/servers/private-servers.js';
import { attest, startUp } from '../support/servers/up.js';
import { codeBlocks } from '../support/source/pages.js';
import { startFaultTsa } from '../support/witnesses/fault-tsa.js';

/** What is typed next: the former submission and a new one, by the former key. */
const CHECKS = `
export ATTEST_URL=$BASE_URL ATTEST_API_KEY=$(sed -n 's/.*"live_key": "\\(.*\\)".*/\\1/p' credentials.json)
until attest health; do sleep 1; done
attest list --output ndjson
attest verify ../former.txt --bundle ../former.bundle --verify-url "$ATTEST_URL/verify"
echo new > new.txt
attest bundle "$(attest submit new.txt --quiet)" --wait -o new.bundle
attest verify new.txt --bundle new.bundle --verify-url "$ATTEST_URL/verify"
attest backup verify --verify-url "$ATTEST_URL/verify"
`;

t.test('the lines of the page', async (t) => {
  const [lines = '', ...others] = await codeBlocks('docs/deploy.md', 'sh');
  t.same(others, []);
  const dir = t.testdir({ 'former.txt': 'former' });
  const dataDir = join(dir, '.data');
  const former = await startUp(dataDir);
  const id = attest('submit', join(dir, 'former.txt'), '--quiet', '--data-dir', dataDir).trim();
  attest('bundle', id, '--wait', '-o', join(dir, 'former.bundle'), '--data-dir', dataDir);
  await former.stop();
  const server = join(dir, 'server');
  await cp(join(dataDir, 'postgres'), join(server, 'postgres'), { recursive: true });
  await cp(join(dataDir, 'postgres.password'), join(server, 'postgres.password'));
  const postgres = new URL((await startPrivatePostgres(t, server)).url);
  const tsa = await startFaultTsa(t);
  await writeFile(join(dir, 'tsa-chain.pem'), tsa.chainPem);
  const { env } = await makeInstallation(t);
  const port = String(await findFreePort());
  const { stdout, stderr, code } = await typeLines(lines + CHECKS, {
    dir,
    own: {
      'db.example.com': postgres.host,
      'nats://nats.example.com:4222': env.NATS_URL ?? '',
      'https://attest.example.com': `http://127.0.0.1:${port}`,
      '/var/lib/attest/register': join(dir, 'register'),
      'https://tsa.example.com': tsa.url,
      '/etc/attest/tsa-chain.pem': join(dir, 'tsa-chain.pem'),
      '--ops-port 9091': '--ops-port 0',
    },
    env: {
      DATA_DIR: join(dir, 'data'),
      PORT: port,
      OPS_PORT: String(await findFreePort()),
      ALLOW_INSECURE_DESTINATIONS: 'true',
    },
  });
  t.equal(code, 0, stderr.slice(-2_000));
  t.notMatch(stdout, /^failed /m);
  t.match(stdout, `{"id":"${id}"`, 'the former key lists the former submission');
  t.match(stdout, /existed no later than .* according to self-tsa/, 'which verifies');
  t.match(stdout, /existed no later than .* according to tsa\.$/m, 'and the new one');
  const domain = (await readFile(join(dir, 'moved', 'log-domain'), 'utf8')).trim();
  t.match(stdout, `live.${domain}: contradicts nothing, lacks 0 of 2 published leaves`);
});
