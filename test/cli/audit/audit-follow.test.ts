import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { formatSecret } from '../../../src/server/webhooks/delivery/sign.js';
import { restJson } from '../../proof/rest-json.js';
import { makeService } from '../../proof/sample.js';
import { makeTrustRoots } from '../../proof/sample-trust-roots.js';
import { runHere } from '../../support/calling/run-cli.js';
import { until } from '../../support/until.js';
import { answering, startReceiver } from '../../support/webhooks/receiver.js';
import { follow } from './following.js';
import { entry, publishLog } from './published-log.js';

const service = await makeService(join(t.testdir(), 'service'));
const ENTRIES = Array.from({ length: 700 }, (_, i) => entry(service, i));
const FORK = ENTRIES.with(100, entry(service, 1_000));
const SECRET = formatSecret(Buffer.alloc(32, 7));

async function publish(t: Test) {
  const log = await publishLog(t, service);
  return { ...log, state: join(t.testdir(), 'state.json') };
}

async function readState(state: string) {
  return JSON.parse(await readFile(state, 'utf8').catch(() => '{}'))[service.origin];
}

t.test('a log is followed from batch to batch, and from one process to the next', async (t) => {
  const { show, url, state, asked } = await publish(t);
  show(ENTRIES.slice(0, 300));
  const first = follow(t, [url, '--state', state, '--metrics', '127.0.0.1:0']);
  const { port } = await first.see('listening');
  await first.see('verified', { tree_size: 300, entries_read: 300 });
  for (const [size, read] of [
    [301, 1],
    [512, 211],
    [600, 88],
  ] as const) {
    show(ENTRIES.slice(0, size));
    await first.see('verified', { tree_size: size, entries_read: read });
  }
  const metrics = await until('the metrics know of it', async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return text.includes('attest_audit_verified_entries{origin="live.log.example"} 600') && text;
  });
  t.match(metrics, /attest_audit_lag_entries\{origin="live\.log\.example"\} 0\n/);
  t.match(metrics, /attest_audit_open_alarms\{origin="live\.log\.example"\} 0\n/);
  t.match(metrics, /attest_audit_last_checkpoint_time_seconds\{origin="live\.log\.example"\} 1[0-9.]+\n/);

  await t.test('a second process on one state file is rejected', async (t) => {
    const second = await runHere(['audit', url, '--state', state]);
    t.match(second, { code: 2, stdout: '', stderr: /^error: .*state\.json is in use by another audit/ });
  });

  first.kill('SIGTERM');
  t.equal(await first.ended(), 0, 'a signal ends it cleanly');
  t.equal(first.events.at(-1)?.event, 'stopped');
  t.equal(first.stderr(), '');
  show(ENTRIES);
  asked.length = 0;
  const second = follow(t, [url, '--state', state]);
  await second.see('verified', { tree_size: 700, entries_read: 100 });
  t.notOk(
    asked.some((path) => path.endsWith('entries/000')),
    'what was read is not read anew',
  );
  second.kill('SIGINT');
  t.equal(await second.ended(), 0);
});

t.test('a kill in the middle of a log costs the bundles in flight', async (t) => {
  const { show, url, state, status, asked } = await publish(t);
  show(ENTRIES);
  // The last bundle is withheld: the log is not readable, and no alarm.
  status.set('log/tile/entries/002.p/188', 403);
  const first = follow(t, [url, '--state', state]);
  await first.see('trouble', { origin: service.origin });
  await until('its place is stored', async () => (await readState(state))?.read?.size === 512);
  first.kill('SIGKILL');
  t.equal(await first.ended(), 'SIGKILL');
  t.notOk((await readState(state)).checkpoint, 'no root is verified yet');
  status.clear();
  asked.length = 0;
  const { code, stdout } = await runHere(['audit', url, '--state', state]);
  t.match({ code, stdout }, { code: 0, stdout: '700 entries, 188 read now' });
  t.notOk(asked.some((path) => /entries\/00[01]$/.test(path)));
  t.match(await readState(state), { checkpoint: /^live\.log\.example\n700\n/, read: undefined });
});

t.test('entries that were read before a kill are held against the checkpoint after it', async (t) => {
  const { show, url, state, status, files } = await publish(t);
  show(FORK);
  const forged = files.get('log/checkpoint')!;
  show(ENTRIES);
  status.set('log/tile/entries/002.p/188', 403);
  const first = follow(t, [url, '--state', state]);
  await until('its place is stored', async () => (await readState(state))?.read?.size === 512);
  first.kill('SIGKILL');
  await first.ended();
  status.clear();
  files.set('log/checkpoint', forged);
  const ended = await runHere(['audit', url, '--state', state]);
  t.match(ended, { code: 3, stdout: /two checkpoints of size 700 with different roots/ });
});

t.test('killed at any request, it ends with the same state', async (t) => {
  const { show, url, state, asked, behave } = await publish(t);
  show(ENTRIES.slice(0, 300));
  t.equal((await runHere(['audit', url, '--state', state])).code, 0);
  show(ENTRIES);
  const paths = ['checkpoint', 'tile/entries/001', 'tile/0/001', 'tile/entries/002.p/188', 'tile/1/000.p/2'];
  for (const path of paths) {
    const killed = follow(t, [url, '--state', state]);
    behave.set(`log/${path}`, () => killed.kill('SIGKILL'));
    t.equal(await killed.ended(), 'SIGKILL', path);
    behave.clear();
    t.match(await readState(state), { checkpoint: /^live\.log\.example\n300\n/ });
  }
  asked.length = 0;
  t.match(await runHere(['audit', url, '--state', state]), { code: 0, stdout: '700 entries, 400 read now' });
});

t.test('a fork between two mirrors ends it with 3, after the webhook has taken the alarm', async (t) => {
  const { show, url, state } = await publish(t);
  const receiver = await startReceiver(t);
  receiver.trust(SECRET);
  receiver.behave((response) => {
    answering(receiver.received.length === 1 ? 500 : 204)(response, receiver.received[0]!);
  });
  show(ENTRIES.slice(0, 600));
  show(ENTRIES.slice(0, 600), { folder: 'mirror' });
  const args = [url, '--state', state, '--mirror', `${url}/mirror`, '--webhook', receiver.url];
  const following = follow(t, args, { ATTEST_AUDIT_WEBHOOK_SECRET: SECRET });
  await following.see('verified', { tree_size: 600 });
  show(FORK.slice(0, 650), { folder: 'mirror' });
  await following.see('alarm', { kind: 'split_view' });
  t.equal(await following.ended(), 3);
  const [first, second, ...more] = receiver.received;
  t.match(first?.event, { type: 'log.alarm', data: { kind: 'split_view', origin: service.origin } });
  t.equal(second?.event.id, first?.event.id, 'what was not taken is sent again');
  t.strictSame(more, []);
  t.notMatch(JSON.stringify(following.events), SECRET);
});

t.test('with --follow it continues: an alarm is reported once, and the log is followed', async (t) => {
  const { show, url } = await publish(t);
  const folder = t.testdir();
  await writeFile(join(folder, 'secret'), `${SECRET}\n`);
  const receiver = await startReceiver(t);
  receiver.trust(SECRET);
  const hook = ['--webhook', receiver.url, '--webhook-secret-file', join(folder, 'secret')];
  show(ENTRIES.slice(0, 300));
  show(FORK.slice(0, 200), { folder: 'mirror' });
  const following = follow(t, [url, '--mirror', `${url}/mirror`, '--keep-going', ...hook]);
  await following.see('alarm', { kind: 'split_view' });
  for (const size of [400, 500, 600]) {
    show(ENTRIES.slice(0, size));
    await following.see('verified', { tree_size: size });
  }
  following.kill('SIGTERM');
  t.equal(await following.ended(), 3, 'the alarm holds');
  t.equal(following.events.filter(({ event }) => event === 'alarm').length, 1);
  t.equal(receiver.received.length, 1);
});

t.test('a log that cannot be reached is trouble, then stale, and comes back', async (t) => {
  const { show, url, state, status } = await publish(t);
  show(ENTRIES.slice(0, 300));
  const following = follow(t, [url, '--state', state, '--max-age', '1s']);
  await following.see('verified', { tree_size: 300 });
  status.set('log/checkpoint', 403);
  await following.see('trouble');
  const { id } = await following.see('alarm', { kind: 'stale' });
  status.clear();
  show(ENTRIES.slice(0, 600));
  await following.see('verified', { tree_size: 600 });
  await following.see('resolved', { kind: 'stale', id });
  following.kill('SIGTERM');
  t.type(await following.ended(), 'number');
});

t.test('a key of statements may be rotated while a log is followed', async (t) => {
  const { show, url, files, roots } = await publish(t);
  const rotated = await makeService(join(t.testdir(), 'rotated'));
  show(ENTRIES.slice(0, 300));
  const following = follow(t, [url]);
  await following.see('verified', { tree_size: 300 });
  roots.dsseSigningKeys.push(...makeTrustRoots(rotated).dsseSigningKeys);
  files.set('trust_roots.json', utf8(JSON.stringify(restJson(TrustRootsSchema, roots))));
  const entries = [...ENTRIES.slice(0, 300), entry(rotated, 300)];
  show(entries);
  await following.see('verified', { tree_size: 301 });
  const stranger = await makeService(join(t.testdir(), 'stranger'));
  show([...entries, entry(stranger, 301)]);
  const { message } = await following.see('alarm', { kind: 'not_intact' });
  t.match(message, 'entry 301 names a key that the trust roots do not');
  t.equal(await following.ended(), 1);
});

t.test('a rollback that lasts raises an alarm', async (t) => {
  const { show, url, state } = await publish(t);
  show(ENTRIES.slice(0, 600));
  const following = follow(t, [url, '--state', state]);
  await following.see('verified', { tree_size: 600 });
  // The second round notes the checkpoint of the first; those after it change nothing.
  let before = '';
  await until('a second round', async () => {
    before = await readFile(state, 'utf8');
    return /"notes": \[\s*"/.test(before);
  });
  show(ENTRIES.slice(0, 300));
  const { message } = await following.see('alarm', { kind: 'not_intact' });
  t.match(message, /it shows 300 entries now, and has signed that there are 600 \(the last audit\)/);
  t.equal(await following.ended(), 1);
  t.equal(await readFile(state, 'utf8'), before);
});
