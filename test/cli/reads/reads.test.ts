/** The commands that read what the API has, over a real service. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { creation, invalidCreation } from '../../server/rpc/samples.js';
import { submit } from '../../server/rpc/submitting.js';
import { startApp } from '../../support/app.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';

const app = await startApp(t);
const owner = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };

/** An ID that no submission has. */
const NONE = `sub_${'0'.repeat(26)}`;

const attest = (...args: string[]) => runHere(args, { env });

/** The standard output of a command that succeeds. */
async function out(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await attest(...args);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

const rest = (path: string) => app.rest(path, { apiKey: owner.key }).then(({ json }) => json);
const jsonLines = (output: string) =>
  output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

t.test('an empty list is a note, an empty array or no line', async (t) => {
  for (const command of ['list', 'batches']) {
    t.same(await attest(command), { code: 0, stdout: '', stderr: 'none\n' });
    t.equal(await out(command, '--json'), '[]\n');
    t.equal(await out(command, '--output', 'ndjson'), '');
  }
});

t.test('one submission is shown, and as JSON it is that of the REST API', async () => {
  const { id, artifactSha256, leafSha256 } = await submit(app, owner);
  t.match(
    await out('get', id),
    new RegExp(`^id +${id}\nstatus +queued\nartifact +sha256:${artifactSha256}\n`),
  );
  await app.drain();
  const shown = await out('get', id);
  t.match(shown, new RegExp(`^leaf +${leafSha256}$`, 'm'));
  t.match(shown, /^witnessed +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/m);
  t.match(shown, new RegExp(`^bundle +attest bundle ${id}$`, 'm'));
  t.match(shown, /^metadata +valid {2}\{.*"schema":"purl".*\}$/m);
  for (const flags of [['--json'], ['--output', 'json'], ['--output=ndjson']]) {
    const output = await out('get', id, ...flags);
    t.same(JSON.parse(output), await rest(`/v1/attestations/${id}`), 'with its bundle');
    t.equal(output.split('\n').length, 2, 'one line');
  }
  t.match(await attest('get', NONE, '--output', 'ndjson'), { code: 1, stderr: /^\{"error":/ });
  t.match(await attest('get', NONE), { code: 1, stderr: /^error: .*submission\.not_found/ });
  t.match(await attest('get', id, '--json', '--output', 'table'), {
    code: 2,
    stderr: /--json and --output table are mutually exclusive/,
  });
  t.match(await attest('get', id, '--output', 'yaml'), {
    code: 2,
    stderr: /Allowed choices are table, json, ndjson/,
  });
});

t.test('untrusted text is never printed raw', async (t) => {
  const note = 'a\u001b]0;title\u0007\u001b[2Jb\u009b31m\u202ec\r\nd';
  const body = { ...invalidCreation('ab'.repeat(32), { schema: 'purl', note }), validation: 'lenient' };
  const { json } = await app.rest('/v1/attestations', { apiKey: owner.key, body });
  for (const output of [
    await out('get', String(json.id)),
    await out('list'),
    (await attest('status', note)).stderr,
  ]) {
    for (const control of ['\u001b', '\u0007', '\u009b', '\u202e', '\r']) t.notOk(output.includes(control));
  }
  const [listed] = JSON.parse(await out('list', '--limit', '1', '--json'));
  t.equal(listed.metadata.note, note, 'JSON has it as it is');
});

t.test('a list has all pages, newest first, in every format', async (t) => {
  const lister = await newKey(app);
  const run = (...args: string[]) =>
    runHere(['list', ...args], { env: { ...env, ATTEST_API_KEY: lister.key } });
  const items = Array.from({ length: 205 }, () => creation(randomBytes(32).toString('hex')));
  const made = await app.rest('/v1/attestations:batch', { apiKey: lister.key, body: { items } });
  const ids = (made.json.results as { submission: { id: string } }[])
    .map(({ submission }) => submission.id)
    .reverse();
  await app.drain();
  const table = (await run()).stdout.trimEnd().split('\n');
  t.match(table[0], /^ID +SUBMITTED +STATUS +SCHEMA +ARTIFACT$/);
  t.same(
    table.slice(1).map((line) => line.split(' ')[0]),
    ids,
  );
  t.equal(new Set(table.map((line) => line.search(/SUBMITTED|\d{4}-/))).size, 1, 'aligned');
  t.same(
    JSON.parse((await run('--json')).stdout).map(({ id }: { id: string }) => id),
    ids,
  );
  t.same(
    jsonLines((await run('--output', 'ndjson')).stdout).map(({ id }) => id),
    ids,
  );
  for (const limit of [1, 200, 201]) {
    t.same(
      jsonLines((await run('--output', 'ndjson', '--limit', String(limit))).stdout).map(({ id }) => id),
      ids.slice(0, limit),
    );
  }
  const [newest] = jsonLines((await run('--output', 'ndjson')).stdout);
  const { json } = await app.rest(`/v1/attestations?limit=1`, { apiKey: lister.key });
  t.same(newest, (json.data as unknown[])[0], 'members are those of the REST API');
});

t.test('filters of a list', async (t) => {
  const lister = await newKey(app);
  const dir = t.testdir({ 'a.txt': 'a' });
  const content = createHash('sha256').update('a').digest('hex');
  const now = () => new Date();
  const run = async (args: string[], at = now) => {
    const ended = await runHere(['list', '--output', 'ndjson', ...args], {
      env: { ...env, ATTEST_API_KEY: lister.key },
      now: at,
    });
    if (ended.code !== 0) throw new Error(ended.stderr);
    return jsonLines(ended.stdout).map(({ id }) => id);
  };
  const first = await submit(app, lister);
  await app.drain();
  const hold = await app.holdSealing();
  t.teardown(hold);
  const { json } = await app.rest('/v1/attestations', {
    apiKey: lister.key,
    body: { artifact: { sha256: content }, metadata: { schema: 'purl', purl: 'pkg:npm/a@1' }, build: 'ci-1' },
  });
  const second = String(json.id);
  const at = new Date(String(json.submitted_at));
  t.same(await run(['--status', 'witnessed']), [first.id]);
  t.same(await run(['--status', 'queued']), [second]);
  t.same(await run(['--artifact', join(dir, 'a.txt')]), [second]);
  t.same(await run(['--artifact', `sha256:${first.artifactSha256.toUpperCase()}`]), [first.id]);
  t.same(await run(['--schema', 'purl']), [second, first.id]);
  t.same(await run(['--schema', 'other']), []);
  t.same(await run(['--build', 'ci-1']), [second]);
  t.same(await run(['--build', 'ci-2']), []);
  await t.rejects(run(['--build', '']), /--build is not 1 to 128 characters/, 'a variable that is not set');
  t.same(await run(['--before', at.toISOString()]), [first.id]);
  t.same(await run(['--since', new Date(at.getTime() - 1).toISOString()]), [second]);
  t.same(await run(['--since', '1h']), [second, first.id]);
  t.same(await run(['--before', '1h']), []);
  t.same(await run(['--since', '1ms'], () => at), [second], 'a duration is before now');
  for (const [args, message] of [
    [
      ['--since', 'yesterday'],
      /--since is neither an RFC 3339 time, as 2026-01-31T12:00:00Z, nor a duration before now/,
    ],
    [['--since', '2026-01-31'], /--since is neither/],
    [['--since', '2026-01-31T12:00:00'], /--since is neither/],
    [['--before', '2026-02-31T25:00:00Z'], /--before is neither/],
    [['--before', '-1h'], /--before is neither/],
    [['--before', '9'.repeat(40)], /--before is neither/],
    [['--limit', '0'], /--limit is not a whole number from 1 to/],
    [['--status', 'lost'], /Allowed choices are queued, witnessed, partial, failed/],
    [['--artifact', 'sha256:12'], /sha256: is not followed by 64 hex digits/],
    [['--artifact', join(dir, 'gone')], /gone cannot be read: ENOENT/],
  ] as [string[], RegExp][]) {
    t.match(await attest('list', ...args), { code: 2, stdout: '', stderr: message });
  }
});

t.test('the status of submissions is a line each, and exit code 1 if one failed or is missing', async (t) => {
  const { id } = await submit(app, owner);
  await app.drain();
  t.match(await attest('status', id), {
    code: 0,
    stdout: new RegExp(`^ID +STATUS +WITNESSED\n${id} {2}witnessed {2}\\d{4}-.*Z\n$`),
  });
  const some = await attest('status', NONE, id, '--output', 'ndjson');
  t.equal(some.code, 1);
  t.match(jsonLines(some.stdout), [
    { id: NONE, status: null, witnessed_at: null },
    { id, status: 'witnessed', witnessed_at: /Z$/ },
  ]);
  for (const wrong of [
    ['status', id, 'sub_x'],
    ['get', 'btc_x'],
    ['bundle', `${id}0`, '-o', 'b.json'],
    ['redact', ''],
  ])
    t.match(await attest(...wrong), {
      code: 2,
      stdout: '',
      stderr: /is not a submission ID, as sub_0.{25}\n$/,
    });
  t.match(await attest('status'), { code: 2, stderr: /missing required argument 'id'/ });

  const other = await startApp(t, { witnessDeadlineMs: 1 });
  other.witnesses[0]!.isBroken = true;
  const holder = await newKey(other);
  const failing = await submit(other, holder);
  const status = () =>
    runHere(['status', failing.id], { env: { ATTEST_URL: other.baseUrl, ATTEST_API_KEY: holder.key } });
  await until('it has failed', async () => (await status()).stdout.includes('failed'));
  t.match(await status(), { code: 1, stdout: /failed +-\n$/, stderr: '' });
});

t.test('batches are listed, and shown with their witnesses', async (t) => {
  await submit(app, owner);
  await app.drain();
  const table = await out('batches', '--limit', '2');
  t.match(
    table,
    /^ID +STATUS +SEALED +WITNESSED +FIRST INDEX +TREE SIZE +WITNESSES\n(btc_\w{26} {2}witnessed .* 2 of 2\n){2}$/,
  );
  const [id = ''] = /btc_\w{26}/.exec(table) ?? [];
  t.same(JSON.parse(await out('batches', id, '--json')), await rest(`/v1/batches/${id}`));
  const shown = await out('batches', id);
  t.match(shown, new RegExp(`^id +${id}\nstatus +witnessed\nsealed +\\d{4}-.*Z\n`));
  t.match(
    shown,
    /\n\nWITNESS +KIND +STATUS +REQUIRED +LANDED +LAST ERROR\nlog +transparency_log +landed +yes/,
  );
  t.equal(await out('batches', '--status', 'failed', '--json'), '[]\n');
  t.match(await attest('batches', id, '--limit', '1'), { code: 2, stderr: /are for a list, without an ID/ });
  t.match(await attest('batches', 'btc_none'), { code: 1, stderr: /batch\.not_found/ });
});

t.test('colours are for a terminal that has them', async (t) => {
  const { id } = await submit(app, owner);
  await app.drain();
  const green = `${id}  \u001b[32mwitnessed\u001b[39m  `;
  for (const [more, terminal, expected] of [
    [{}, true, green],
    [{ TERM: 'xterm-256color' }, true, green],
    [{ NO_COLOR: '1' }, true, `${id}  witnessed  `],
    [{ TERM: 'dumb' }, true, `${id}  witnessed  `],
    [{}, false, `${id}  witnessed  `],
  ] as const) {
    const isTerminal = terminal ? { terminal: 100 } : {};
    const { stdout } = await runHere(['status', id], { env: { ...env, ...more }, ...isTerminal });
    t.ok(stdout.includes(expected), JSON.stringify(more));
  }
  const json = await runHere(['status', id, '--json'], { env, terminal: 100 });
  t.notMatch(json.stdout, '\u001b');
});

t.test('health needs no key, and is in the exit code', async (t) => {
  const run = (...args: string[]) => runHere(['health', ...args], { env: { DATA_DIR: '/nowhere' } });
  t.same(await run('--url', app.baseUrl), {
    code: 0,
    stdout: `serving  ${app.baseUrl} (--url)\n`,
    stderr: '',
  });
  t.same(JSON.parse((await run('--url', app.baseUrl, '--json')).stdout), {
    status: 'serving',
    url: app.baseUrl,
  });
  t.match(await run(), { code: 2, stderr: /ATTEST_URL is not set/ });
  const closed = createServer((socket) => socket.destroy()).listen(0);
  t.teardown(() => closed.close());
  await once(closed, 'listening');
  const { port } = closed.address() as { port: number };
  const gone = await run('--url', `http://localhost:${port}`, '--json');
  t.equal(gone.code, 1);
  t.match(JSON.parse(gone.stdout), { status: 'unreachable', reason: /./ });
  t.match(await run('--url', `${app.baseUrl}/nothing`), {
    code: 1,
    stdout: /^unreachable .* the answer is not the service's/,
  });
  const tls = await run('--url', app.baseUrl.replace('http:', 'https:'));
  t.match(tls, { code: 1, stdout: /^unreachable / });
  t.notMatch(tls.stdout, 'fetch failed', 'the reason is that of the network');
});
