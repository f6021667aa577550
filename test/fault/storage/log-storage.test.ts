/** The public log in a folder that a web server serves: whole while no API process runs, after kills of workers, too. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { serveFolder } from '../../support/exports/static-folder.js';
import { setScene } from '../../support/fault-fixture.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const folder = await mkdtemp(join(tmpdir(), 'attest-log-storage-'));
t.teardown(() => rm(folder, { recursive: true }));
const verifyUrl = `${await serveFolder(t, folder)}/verify`;

const { installation, pool, apiKey } = await setScene(t, {
  env: { LOG_STORAGE: join(folder, 'verify'), VERIFY_URL: verifyUrl },
});

/** The audit's report of the live log, once it has that many leaves. */
async function auditOf(size: number) {
  const audit = () => runHere(['audit', '--verify-url', verifyUrl, '--json'], { env: {} });
  return until(`the audit reads ${size} leaves`, async () => {
    const { code, stdout, stderr } = await audit();
    if (code !== 0) return undefined;
    const report = JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as { logs: { tree_size: number }[] };
    const [live] = report.logs;
    return live?.tree_size === size ? { ...live, stderr } : undefined;
  });
}

t.test('what was published is read and audited without an API process', async (t) => {
  const workers = [await installation.startWorker(), await installation.startWorker()];
  const api = await installation.startApi();
  const { body } = await send(api.baseUrl, apiKey, newCreation());
  await untilWitnessed(pool);
  const headers = { authorization: `Bearer ${apiKey}` };
  const first = await fetch(`${api.baseUrl}/v1/attestations/${body.id}/bundle`, { headers });
  const dir = t.testdir({ 'bundle.json': await first.text() });
  for (let i = 0; i < 2; i++) await send(api.baseUrl, apiKey, newCreation());
  await untilWitnessed(pool);
  await api.kill();
  t.match(await auditOf(3), { problems: [], entries_read: 3 });
  const bundle = join(dir, 'bundle.json');
  const renewed = join(dir, 'renewed.json');
  const renew = (...args: string[]) =>
    runHere(['bundle', '--renew', bundle, '--verify-url', verifyUrl, ...args], { env: {} });
  t.match(await renew('-o', renewed), { code: 0, stderr: /with a proof in the log of 3 leaves/ });
  const { checkpoints } = JSON.parse(await readFile(renewed, 'utf8')) as {
    checkpoints: { tree_size: number }[];
  };
  t.same(
    checkpoints.map(({ tree_size }) => tree_size),
    [1, 3],
  );
  const [, sha256 = ''] = /"artifact_sha256":"(\w+)"/.exec(await readFile(renewed, 'utf8')) ?? [];
  const verified = await runHere(
    ['verify', `sha256:${sha256}`, '--bundle', renewed, '--verify-url', verifyUrl],
    { env: {} },
  );
  t.match(verified, { code: 0, stdout: /3 leaves/ });
  t.match(
    (await renew('--format', 'tlog-proof')).stdout,
    /^c2sp\.org\/tlog-proof@v1\nindex 0\n[\s\S]*\n\nlive\.log\.example\.com\n3\n/,
  );
  t.match(await renew('-o', renewed), { code: 2, stderr: /renewed\.json exists, .* --force/ });
  t.match(await renew('-o', bundle), { code: 0 }, 'the earlier bundle makes room for the newer one');
  const tile = join(folder, 'verify/log/live/tile/0/000.p/3');
  const hashes = await readFile(tile);
  await writeFile(tile, Buffer.alloc(hashes.length));
  t.match(await renew(), {
    code: 1,
    stdout: '',
    stderr: /do not prove the leaf 0 in the checkpoint of 3 leaves/,
  });
  await writeFile(tile, hashes);
  const roots = (await (await fetch(`${verifyUrl}/trust_roots.json`)).json()) as {
    transparency_logs: unknown[];
  };
  t.equal(roots.transparency_logs.length, 2);
  for (const worker of workers) await worker.kill();
});

t.test('a worker that is killed or stopped delays nothing that the next one writes', async (t) => {
  const api = await installation.startApi();
  let size = 3;
  for (const stop of ['kill', 'standStill'] as const) {
    const first = await installation.startWorker();
    for (let i = 0; i < 20; i++) await send(api.baseUrl, apiKey, newCreation());
    await first[stop]();
    size += 20;
    const second = await installation.startWorker();
    await untilWitnessed(pool);
    t.match(await auditOf(size), { problems: [] });
    const shown = await (await fetch(`${second.opsUrl}/metrics`)).text();
    t.match(shown, new RegExp(`^attest_log_stored_size\\{log="live\\.log\\.example\\.com"\\} ${size}$`, 'm'));
    await second.kill();
    if (stop === 'standStill') await first.kill();
  }
});
