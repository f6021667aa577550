/** What follows a submission, in the dashboard: batches, webhooks and exports. */
import type { Test } from 'tap';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { exportTo } from '../server/rpc/samples.js';
import { startStore } from '../support/exports/s3/fixture.js';
import { answering, startReceiver } from '../support/webhooks/receiver.js';
import { assertGood, type DashboardScene } from './dashboard-scene.js';

/** Tests of batches, webhooks and exports in the dashboard. */
export function testFollowing(t: Test, { app, key, signedIn, submit }: DashboardScene): void {
  t.test('batches, witnesses and the log', async (t) => {
    await signedIn(t, '/batches', async ({ page }) => {
      await page.getByRole('region', { name: 'Batches by witness' }).waitFor();
      await page.getByRole('heading', { name: 'Size of the log' }).waitFor();
      await page.getByRole('table', { name: 'Witnesses' }).waitFor();
      await page.getByRole('img', { name: /Epoch 1 of the log has grown to \d+ leaves/ }).waitFor();
      await page.locator('.chart canvas').waitFor();
      await page.getByText('live.log.example.com', { exact: true }).waitFor();
      t.match(
        await page.getByLabel('checkpoint', { exact: true }).textContent(),
        /^live\.log\.example\.com\n/,
      );
      await assertGood(t, page, 'batches');
    });
  });

  t.test('a webhook is added, tested, looked into and redelivered', async (t) => {
    const receiver = await startReceiver(t);
    receiver.behave(answering(500, 'no, thank you'));
    await signedIn(t, '/webhooks', async ({ page }) => {
      await page.getByRole('heading', { name: 'No webhooks' }).waitFor();
      await page.getByRole('button', { name: 'Add webhook' }).click();
      await page.getByLabel('Address').fill(`${receiver.url}/hook`);
      t.same(await page.getByRole('checkbox').count(), 4, 'every event but tests');
      await assertGood(t, page, 'add-webhook');
      await page.getByRole('dialog').getByRole('button', { name: 'Add webhook' }).click();
      const secret = (await page.getByLabel('secret', { exact: true }).textContent()) ?? '';
      app.recorder.secrets.add(secret);
      receiver.trust(secret);
      await page.getByRole('button', { name: 'I have copied it' }).click();
      await assertGood(t, page, 'webhooks');
      await page.getByRole('link', { name: `${receiver.url}/hook` }).click();
      await page.getByRole('button', { name: 'Send a test event' }).click();
      await page.getByText(/^500, \d+ ms$/).waitFor();
      await assertGood(t, page, 'webhook');
      await page.getByRole('button', { name: /^Show attempts of/ }).click();
      await page.getByText('no, thank you').waitFor();
      await page.getByText('Request', { exact: true }).click();
      await page.getByText(/^POST http\S+\n.*\nservice-signature: t=\d+,v1=…\n/s).waitFor();
      await assertGood(t, page, 'delivery');
      receiver.behave(answering(204));
      await page.getByRole('button', { name: 'Redeliver', exact: true }).click();
      await page.getByRole('dialog').getByText('204', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Close', exact: true }).click();
      const id = await submit({ purl: 'pkg:npm/followed@1.0.0' });
      await app.drain();
      await page.getByText('attestation.witnessed').first().waitFor();
      const subscription = page.url();
      await page.goto(`${app.baseUrl}/dashboard/submissions/${id}`);
      await page.getByRole('heading', { name: 'Event attestation.witnessed' }).waitFor();
      await page.goto(subscription);
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Delete it' }).click();
      await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor();
    });
  });

  t.test('exports show their history and lag, and are added and stopped', async (t) => {
    const { url } = await startStore(t);
    const { code } = await app.surfaces()[0]!.call(ExportService.method.createExport, exportTo(url), key.key);
    t.equal(code, 'ok');
    const id = await submit({ purl: 'pkg:npm/exported@1.0.0' });
    await app.drain();
    await signedIn(t, '/exports', async ({ page }) => {
      await page.getByRole('table', { name: 'Objects' }).waitFor();
      await page.getByRole('button', { name: 'Test the destination' }).click();
      await page.getByText('The destination can be written.').waitFor();
      await assertGood(t, page, 'exports');
      await page.getByRole('button', { name: 'Add export' }).click();
      await page.getByLabel('bucket', { exact: true }).fill('no-such-bucket');
      await assertGood(t, page, 'add-export');
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      await page.getByRole('button', { name: 'Stop it' }).click();
      await page.getByText('stopped', { exact: true }).waitFor();
      await page.goto(`${app.baseUrl}/dashboard/submissions/${id}`);
      await page.getByRole('heading', { name: 'Exported' }).waitFor();
      await page.getByText(/^delivered, revision \d+, by exp_\w+ to .*\.jsonl$/).waitFor();
      await assertGood(t, page, 'exported');
    });
  });
}
