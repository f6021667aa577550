import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import t from 'tap';
import { submit } from '../server/rpc/submitting.js';
import { startApp } from '../support/app.js';
import { PROGRAM, runHere } from '../support/calling/run-cli.js';
import { newKey } from '../support/calling/test-keys.js';
import { BUCKET, OWNER, startStore } from '../support/exports/s3/fixture.js';
import { until } from '../support/until.js';
import { answering, startReceiver } from '../support/webhooks/receiver.js';

const app = await startApp(t);
const owner = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(['webhooks', ...args], { env });
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

function secretIn(text: string): string {
  const [secret] = /whsec_[A-Za-z0-9+/=]+/.exec(text) ?? [];
  if (secret === undefined) throw new Error(`no secret in ${text}`);
  return secret;
}

t.test('a subscription is made, shown, changed, tested and deleted', async (t) => {
  const receiver = await startReceiver(t);
  const made = await run('create', receiver.url, '--event', 'attestation.witnessed');
  const [id = ''] = made.split(' ');
  receiver.trust(secretIn(made));
  t.match(
    made,
    /^whk_\w{26} {2}active .* attestation\.witnessed\nsecret whsec_\S+\nThe secret is shown only once\.\n$/,
  );
  t.match(JSON.parse(await run('get', id, '--json')), {
    id,
    url: receiver.url,
    events: ['attestation.witnessed'],
  });
  t.match(await run('list'), new RegExp(`${id} +active +attestation.witnessed +${receiver.url}`));
  t.match(
    await run('update', id, '--event', 'attestation.failed', '--disable'),
    /disabled .*attestation\.failed\ndisabled: /,
  );
  t.match(await run('update', id, '--enable', '--event', 'attestation.witnessed'), /active/);
  receiver.trust(secretIn(await run('rotate', id)));
  t.match(await run('test', id), /^dlv_\w{26} {2}queued/);
  await app.drain();
  const [, line = ''] = (await run('deliveries', id)).split('\n');
  t.match(line, /^dlv_\w{26} .* delivered +webhook\.test +1 +204$/);
  const [delivery = ''] = line.split(' ');
  t.match(await run('redeliver', id, delivery), /again/);
  await app.drain();
  t.equal(receiver.received.length, 2);
  t.match(JSON.parse(await run('redeliver', id, '--since', '2026-01-01T00:00:00Z', '--json')), { id });
  t.match(await run('delete', id), /deleted/);
  t.match(await runHere(['webhooks', 'get', id], { env }), { code: 1, stderr: /webhook\.not_found/ });
});

t.test('the deliveries of a subscription show the event export.failing', async (t) => {
  const receiver = await startReceiver(t);
  const store = await startStore(t);
  const made = await run('create', receiver.url, '--event', 'export.failing');
  const [id = ''] = made.split(' ');
  receiver.trust(secretIn(made));
  const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
  const destination = { kind: 's3', bucket: BUCKET, endpoint: store.url, access_key_id, secret_access_key };
  const { json } = await app.rest('/v1/exports', { apiKey: owner.key, body: { destination } });
  const exportId = String(json.id);
  t.match(exportId, /^exp_/);
  store.fail(({ operation }) =>
    operation === 'PutObject' ? { kind: 'refuse', code: 'AccessDenied' } : undefined,
  );
  await app.pool`
    UPDATE export SET failures = 9, failing_since = clock_timestamp() - interval '25 hours' WHERE id = ${exportId}`;
  await submit(app, owner);
  await app.drain();
  const line = await until('the event is delivered', async () => {
    const [, first = ''] = (await run('deliveries', id)).split('\n');
    return first.includes('delivered') ? first : undefined;
  });
  t.match(line, /^dlv_\w{26} .* delivered +export\.failing +1 +2\d\d$/);
  const [delivery = ''] = line.split(' ');
  t.match(JSON.parse(await run('delivery', id, delivery, '--json')), {
    event: { type: 'export.failing', data: { export_id: exportId, last_error: /^access is denied/ } },
  });
  await app.rest(`/v1/exports/${exportId}`, { apiKey: owner.key, method: 'DELETE' });
  await run('delete', id);
});

t.test(
  'a delivery is shown with its attempts, a disabled subscription with reason and backlog',
  async (t) => {
    const receiver = await startReceiver(t);
    receiver.behave(answering(410, 'we moved'));
    const made = await run('create', receiver.url, '--event', 'attestation.witnessed');
    const [id = ''] = made.split(' ');
    receiver.trust(secretIn(made));
    const submission = await submit(app, owner);
    await app.drain();
    t.match(
      await run('get', id),
      /disabled .*\ndisabled: the endpoint answered 410 Gone\nevery attempt has failed since 20/,
    );
    const [, line = ''] = (await run('deliveries', id, '--limit', '300')).split('\n');
    const [delivery = ''] = line.split(' ');
    t.match(
      await run('delivery', id, delivery),
      new RegExp(
        `^${delivery}  pending  attestation.witnessed  evt_\\w{26}\n.*"submission_id":"${submission.id}".*\n` +
          `attempt 1  20\\S+  \\d+ ms  the endpoint answered 410\n  POST ${receiver.url}\n(?:  [a-z-]+: .*\n){6}` +
          '  response: we moved\nnext attempt  20\\S+\n$',
      ),
    );
    t.match(await run('deliveries', id, '--submission', submission.id), delivery);
    t.notMatch(await run('deliveries', id, '--submission', 'sub_none'), delivery);
    t.match(await run('redeliver', id, delivery), /waits: the subscription is disabled/);
    t.match(await run('redeliver', id, '--since', '2026-01-01'), /^failed since 2026-01-01T\S+ {2}waits/);
    receiver.behave(answering(204));
    await run('update', id, '--enable');
    await app.drain();
    t.match(await run('delivery', id, delivery), / delivered .*\nattempt 2 /s);
    const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
    t.match(
      await run('rotate', id, '--secret', secret),
      /the previous secret keeps signing until 20.*\nsecret whsec_BQUF/,
    );
    await run('delete', id);
  },
);

t.test('usage errors are reported', async (t) => {
  for (const [args, problem] of [
    [['create', 'http://127.0.0.1:9/', '--event', 'webhook.test'], /unknown event webhook\.test/],
    [['deliveries', 'whk_x', '--status', 'lost'], /--status is not one of/],
    [['redeliver', 'whk_x'], /name a delivery/],
    [['redeliver', 'whk_x', '--since', 'yesterday'], /not an RFC 3339 time/],
    [['update', 'whk_x', '--enable', '--disable'], /mutually exclusive/],
    [['update', 'whk_x'], /nothing to change/],
    [['listen', '--port', 'abc'], /--port is not a whole number/],
    [['listen', '--port', '65536'], /--port is not a whole number/],
    [['listen', '--forward-to', 'nonsense'], /--forward-to is not an http/],
  ] as const) {
    t.match(await runHere(['webhooks', ...args], { env }), { code: 2, stderr: problem }, args.join(' '));
  }
});

t.test('listen prints and forwards verified events, rejects others, and cleans up', async (t) => {
  const receiver = await startReceiver(t);
  const child = spawn(process.execPath, [...PROGRAM, 'webhooks', 'listen', '--forward-to', receiver.url], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const printed: string[] = [];
  const said: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => printed.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => said.push(line));
  await until('it listens', () => said.length === 2);
  receiver.trust(secretIn(said.join()));
  const [, address = ''] = /listening at (\S+) for/.exec(said[0] ?? '') ?? [];
  const { id } = await submit(app, owner);
  await app.drain();
  await until('the event is printed', () => printed.length === 1);
  t.match(printed[0], new RegExp(`^evt_\\w{26} {2}attestation.witnessed {2}${id} {2}204$`));
  t.match(receiver.received, [
    { event: { data: { submission_id: id } }, headers: { 'webhook-id': /^evt_/ } },
  ]);
  const forged = await fetch(address, { method: 'POST', body: receiver.received[0]?.body ?? '' });
  t.equal(forged.status, 400);
  t.equal(receiver.received.length, 1);
  await receiver.close();
  const [, subscription = ''] = / for (whk_\w+);/.exec(said[0] ?? '') ?? [];
  await run('test', subscription);
  await app.drain();
  await until('what cannot be forwarded is printed as well', () => printed.length === 2);
  t.match(printed[1], new RegExp(`^evt_\\w{26} {2}webhook.test {2}${subscription} {2}502$`));
  t.match(said.at(-1), `not forwarded to ${receiver.url}: `);
  child.kill('SIGINT');
  t.same(await once(child, 'exit'), [0, null]);
  t.same((await app.rest('/v1/webhooks', { apiKey: owner.key })).json.data, []);
});
