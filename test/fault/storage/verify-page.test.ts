/** The verify page in a folder that a web server serves: it verifies a bundle while no process of the service runs. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { startBrowser } from '../../support/calling/browser.js';
import { send } from '../../support/calling/load.js';
import { serveFolder } from '../../support/exports/static-folder.js';
import { setScene } from '../../support/fault-fixture.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { drop, readSteps, readVerdict } from '../../web/verify-driver.js';

const folder = t.testdir();
const verifyUrl = await serveFolder(t, folder);
const { installation, pool, apiKey } = await setScene(t, {
  env: { LOG_STORAGE: folder, VERIFY_URL: verifyUrl },
});
const browser = await startBrowser(t);

t.test('a bundle is verified against the trust roots beside the page', async (t) => {
  const worker = await installation.startWorker();
  const api = await installation.startApi();
  const artifact = Buffer.from('{"passed":1204,"failed":0}\n');
  const artifactSha256 = createHash('sha256').update(artifact).digest('hex');
  const { body } = await send(api.baseUrl, apiKey, { artifactSha256 });
  await untilWitnessed(pool);
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${api.baseUrl}/v1/attestations/${body.id}/bundle`, { headers });
  const bundle = new Uint8Array(await answer.arrayBuffer());
  await until('the page and the checkpoint of the entry are stored', async () => {
    const [page, checkpoint] = await Promise.all(
      ['index.html', 'log/live/checkpoint'].map((name) => fetch(`${verifyUrl}/${name}`)),
    );
    return page?.ok && checkpoint?.ok && /\n1\n/.test(await checkpoint.text());
  });
  for (const one of [api, worker]) await one.kill();
  await browser.visit(t, { origin: verifyUrl }, async ({ page, takeProblems }) => {
    await page.goto(`${verifyUrl}/index.html`);
    await page.getByText('publishes now').waitFor();
    await drop(page, 'main', [
      { name: 'bundle.json', content: bundle },
      { name: 'report.json', content: artifact },
    ]);
    t.equal((await readVerdict(page, 'bundle.json')).headline, 'Verified');
    t.same(
      (await readSteps(page)).filter(({ word }) => word !== 'Passed'),
      [],
    );
    const tried = `try { document.createElement('script').src = 'data:,'; 'set'; } catch ({ name }) { name; }`;
    t.equal(await page.evaluate(tried), 'TypeError', 'its policy lets no other script run');
    t.match(takeProblems(), [/Trusted/]);
  });
});
