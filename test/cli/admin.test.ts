import t from 'tap';
import { SessionService } from '../../gen/attestation/admin/v1/sessions_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { SCOPES } from '../../src/protocol/scopes.js';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { runHere } from '../support/calling/run-cli.js';
import { signedIn } from '../support/calling/sessions.js';
import { assertNoLeaks } from '../support/judging/recorder.js';

const app = await startApp(t);
const { token } = adminOf(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: token, DATA_DIR: '/nowhere' };

/** Runs a command with the admin token. */
function attest(...args: string[]) {
  return runHere(args, { env });
}

/** The same, of which the test expects JSON. */
async function json<T = Record<string, string>>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await attest(...args, '--json');
  if (code !== 0) throw new Error(`attest ${args.join(' ')}: ${stderr}`);
  const answer = JSON.parse(stdout);
  if (typeof answer.secret === 'string') app.recorder.secrets.add(answer.secret);
  return answer;
}

function works(key: string | undefined): Promise<boolean> {
  return app.rest('/v1/service/me', { apiKey: key }).then(({ status }) => status === 200);
}

t.test('a new installation gets its first project and key from the command line', async (t) => {
  t.match(await attest('projects', 'list'), { code: 0, stdout: 'no projects\n' });
  t.match(await attest('keys', 'list'), { code: 0, stdout: 'no keys\n' });
  t.match(await attest('keys', 'create', '--environment', 'live'), {
    code: 1,
    stderr: /^error: there is no project: create one with `attest projects create`\n$/,
  });
  const made = await attest('projects', 'create', 'first');
  t.match(made, { code: 0, stdout: /^prj_\w{26} {2}first\n$/, stderr: '' });
  const created = await attest('keys', 'create', '--environment', 'live');
  const key = created.stdout.trim();
  app.recorder.secrets.add(key);
  t.match(created, {
    code: 0,
    stdout: /^svc_live_\w{38}\n$/,
    stderr: /^key_\w{26}: the key is shown only once\n$/,
  });
  t.ok(await works(key));
});

t.test('projects are made, shown, renamed and listed', async (t) => {
  const { id = '' } = await json('projects', 'create', 'second');
  t.match(await attest('projects', 'update', id, '--name', 'renamed'), {
    code: 0,
    stdout: `${id}  renamed\n`,
  });
  t.match(await attest('projects', 'update', id, '--public-lookup', 'on'), { code: 0 });
  t.match(await json('projects', 'get', id), { id, name: 'renamed', created_at: /Z$/, public_lookup: 'on' });
  const limited = await json(
    'projects',
    'update',
    id,
    '--submissions-per-day',
    '5',
    '--reads-per-second',
    '6',
  );
  t.match(limited, { limits: { submissions_per_day: 5, reads_per_second: 6 } });
  t.notOk((await json('projects', 'update', id, '--default-limits')).limits);
  const { stdout } = await attest('projects', 'list');
  t.match(stdout, new RegExp(`^ID +CREATED +NAME\\n${id}  \\d{4}-\\d\\d-\\d\\d  renamed\\nprj_.* first\\n$`));
  t.match(await attest('keys', 'create', '--environment', 'live'), {
    code: 1,
    stderr: /there are several projects: choose one with --project/,
  });
});

t.test('sessions of the dashboard are listed, and ended one by one', async (t) => {
  const { id: projectId = '' } = await json('projects', 'create', 'sessions');
  t.match(await attest('dashboard', 'sessions', '--project', projectId), {
    code: 0,
    stdout: 'no sessions\n',
  });
  const browser = await signedIn(app, { projectId, environment: Environment.LIVE });
  const [{ id = '', link_id = '' } = {}] = await json<Record<string, string>[]>('dashboard', 'sessions');
  const row = `${id}  ${projectId}  ${link_id}  (\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\dZ *){3}`;
  const { stdout } = await attest('dashboard', 'sessions', '--project', projectId);
  t.match(stdout, new RegExp(`^ID +PROJECT +LINK +STARTED +LAST USE +ENDS\\n${row}\\n$`));
  t.match(await attest('dashboard', 'sessions', '--operator'), { code: 0, stdout: 'no sessions\n' });
  t.match(await attest('dashboard', 'sessions', '--operator', '--project', projectId), {
    code: 2,
    stderr: /--operator.*--project/,
  });
  t.match(await attest('dashboard', 'end', id), { code: 0, stdout: `${id} was ended\n` });
  t.equal((await browser.call(SessionService.method.getSession, {})).status, 401);
  t.match(await attest('dashboard', 'end', id), {
    code: 1,
    stderr: /there is no such session, or it has ended/,
  });
});

t.test('a key is made, changed, rotated and revoked', async (t) => {
  const { id: project = '' } = await json('projects', 'create', 'keys');
  const rights = ['--scope', 'batches:read', '--expires', '90d', '--reads-per-second', '100'];
  const made = await json(
    'keys',
    'create',
    '--environment',
    'test',
    '--project',
    project,
    '--name',
    'ci',
    ...rights,
  );
  t.match(made, {
    id: /^key_/,
    project_id: project,
    environment: 'test',
    scopes: ['batches:read'],
    limits: { submissions_per_second: 60, reads_per_second: 100 },
    status: 'active',
    secret: /^svc_test_/,
  });
  const { id = '', secret } = made;
  const { stdout: text } = await attest('keys', 'get', id);
  t.match(text, /^name +ci$/m);
  t.match(text, /^scopes +batches:read$/m);
  t.match(text, /^reads +100\/s$/m);
  t.match(text, /^state +active until \d{4}-/m);
  const changed = await json(
    'keys',
    'update',
    id,
    '--scope',
    'batches:read',
    'attestations:read',
    '--submissions-per-hour',
    '0',
    '--expires',
    'never',
  );
  t.match(changed, {
    name: 'ci',
    scopes: ['batches:read', 'attestations:read'],
    limits: { submissions_per_hour: 0, reads_per_second: 100 },
  });
  t.notOk('expires_at' in changed || 'secret' in changed);

  const rotated = await attest('keys', 'rotate', id, '--overlap', '1h');
  const successor = rotated.stdout.trim();
  app.recorder.secrets.add(successor);
  t.match(rotated, { code: 0, stderr: /^key_/ });
  t.ok((await works(secret)) && (await works(successor)), 'both work for an hour');
  t.match(await json('keys', 'get', id), { successor_id: rotated.stderr.split(':')[0] });
  t.match(await attest('keys', 'rotate', id), {
    code: 1,
    stderr: /was rotated already.*api_key\.not_active/,
  });

  t.match(await attest('keys', 'revoke', id), { code: 0, stdout: `${id} is revoked\n` });
  t.notOk(await works(secret));
  t.match(await attest('keys', 'update', id, '--name', 'x'), { code: 1, stderr: /api_key\.not_active/ });
  const { stdout: table } = await attest('keys', 'list', '--project', project);
  t.match(table, /^ID .* STATE\nkey_.* active\nkey_.* revoked \d{4}-\d\d-\d\d\n$/);
  t.notMatch(table, String(secret).slice(9, -4));
});

t.test('lists are read to their end', async (t) => {
  const { id: project = '' } = await json('projects', 'create', 'many');
  await app.pool`
    INSERT INTO api_key (id, project_id, environment, name, prefix, last4, hmac, scopes)
    SELECT 'key_0000000000000000000000' || lpad(n::text, 4, '0'), ${project}, 1, 'n', 'svc_live_', 'aaaa',
           sha256(n::text::bytea), '{}' FROM generate_series(1, 450) n`;
  const keys = await json<{ id: string }[]>('keys', 'list', '--project', project);
  t.equal(new Set(keys.map(({ id }) => id)).size, 450);
});

t.test('usage is shown by day and by hour', async (t) => {
  const { id: project = '' } = await json('projects', 'create', 'usage');
  const { id = '', secret } = await json('keys', 'create', '--environment', 'live', '--project', project);
  for (let i = 0; i < 3; i++) await works(secret);
  t.match(await attest('usage', '--project', project), {
    code: 0,
    stdout:
      /^DAY \(UTC\) +SUBMISSIONS +READS\n(\d{4}-\d\d-\d\d +0 +\d+\n)+total +0 +\d+\nlast 24 h +0 +\d+\n$/,
  });
  t.match((await attest('usage', '--key', id, '--by', 'hour')).stdout, /^HOUR .*\n\d{4}-\d\d-\d\dT\d\d:00 /);
  const usage = await json<{ reads: number; data: unknown[] }>('usage', '--key', id);
  t.ok(usage.reads >= 3);
  t.match(usage.data, [{ start: /T00:00:00.000Z$/, submissions: 0 }]);
});

t.test('the audit log is shown, filtered and read to its end', async (t) => {
  const { id: project = '' } = await json('projects', 'create', 'audited');
  const create = ['keys', 'create', '--environment', 'live', '--project', project];
  const { id = '' } = await json(...create, '--name', 'ci');
  await attest('keys', 'revoke', id);
  const { stdout } = await attest('audit-log', '--project', project);
  t.match(
    stdout,
    new RegExp(
      '^TIME +BY +ACTION +ON +DETAIL\\n' +
        `\\d{4}-\\S+Z  operator \\(api\\)  api_key\\.revoked  ${id}\\n` +
        `\\S+  operator \\(api\\)  api_key\\.created  ${id}  \\{.*"name":"ci".*\\}\\n` +
        `\\S+  operator \\(api\\)  project\\.created  ${project}  \\{"name":"audited"\\}\\n$`,
    ),
  );
  const revoked = await json<object[]>('audit-log', '--resource', id, '--action', 'api_key.revoked');
  t.match(revoked, [{ actor: { kind: 'admin', id: 'api' }, action: 'api_key.revoked', request_id: /^req_/ }]);
  t.equal((await json<object[]>('audit-log', '--project', project, '--limit', '2')).length, 2);
  t.match(await attest('audit-log', '--project', project, '--before', '2020-01-01'), {
    stdout: 'no entries\n',
  });
  t.equal((await json<object[]>('audit-log', '--project', project, '--after', '2020-01-01')).length, 3);

  await app.pool`
    INSERT INTO audit_entry (id, project_id, actor_kind, actor_id, action, resource_id)
    SELECT 'aud_0000000000000000000000' || lpad(n::text, 4, '0'), ${project}, 3, 'test', 1, 'x'
    FROM generate_series(1, 250) n`;
  t.equal((await json<object[]>('audit-log', '--project', project)).length, 50);
  const all = await json<{ id: string }[]>('audit-log', '--project', project, '--all');
  t.equal(new Set(all.map((entry) => entry.id)).size, 253);
  t.equal((await json<object[]>('audit-log', '--project', project, '--limit', '201')).length, 201);
  for (const [wrong, message] of [
    [['--action', 'nothing'], /Allowed choices are attestation\.corrected/],
    [['--after', 'yesterday'], /--after is not a time such as/],
    [['--limit', '0'], /--limit is not a whole number/],
  ] as const) {
    t.match(await attest('audit-log', ...wrong), { code: 2, stderr: message, stdout: '' });
  }
});

t.test('wrong requests are readable errors', async (t) => {
  const table: [args: string[], code: number, message: RegExp][] = [
    [['projects', 'create'], 2, /missing required argument 'name'/],
    [['projects', 'create', ' '], 1, /\/name .*\(request\.invalid/],
    [
      ['projects', 'get', 'prj_none'],
      1,
      /there is no project with this id \(project\.not_found, request req_/,
    ],
    [['projects', 'update', 'prj_none'], 2, /nothing to change: give --name, --public-lookup or a limit/],
    [['keys', 'get', 'key_none'], 1, /api_key\.not_found/],
    [['keys', 'create', '--environment', 'live', '--expires', 'soon'], 2, /--expires is not a duration/],
    [['keys', 'rotate', 'key_none', '--overlap', '31d'], 2, /--overlap is not a duration from 0s to 30d/],
    [['keys', 'update', 'key_none', '--reads-per-second', '-1'], 2, /--reads-per-second is not a whole/],
    [['keys', 'update', 'key_none', '--reads-per-second', '9999999999'], 1, /\/limits\/reads_per_second/],
    [['usage'], 2, /give either --project or --key/],
    [['usage', '--project', 'a', '--key', 'b'], 2, /give either --project or --key/],
    [['usage', '--project', 'prj_none'], 1, /project\.not_found/],
  ];
  for (const [args, code, message] of table) {
    const ended = await attest(...args);
    t.equal(ended.code, code, args.join(' '));
    t.match(ended.stderr, message);
    t.equal(ended.stdout, '');
  }
  const { id: project = '' } = await json('projects', 'create', 'scopes');
  const unknown = ['keys', 'create', '--environment', 'live', '--project', project, '--scope', 'all'];
  t.match(await attest(...unknown), {
    code: 1,
    stderr: /\/scopes\/0 is no scope; there are attestations:read/,
  });
});

t.test('a change of nothing is no change', async (t) => {
  const nothing = await runHere(['keys', 'update', 'key_1'], { env });
  t.match(nothing, {
    code: 2,
    stderr: 'error: nothing to change: give --name, --scope, --expires or a limit\n',
  });
});

t.test('each problem of a request is reported once', async (t) => {
  const { code, stderr } = await runHere(['projects', 'create', ''], { env });
  t.equal(code, 1);
  t.equal(stderr.split('/name').length, 2, stderr);
});

t.test('a wrong token and an unreachable service are readable errors', async (t) => {
  const list = ['projects', 'list'];
  const run = (more: Record<string, string>) => runHere(list, { env: { ...env, ...more } });
  t.match(await run({ ATTEST_ADMIN_TOKEN: 'x'.repeat(30) }), {
    code: 1,
    stderr: /this is not the admin token \(auth\.invalid_key/,
  });
  t.match(await run({ ATTEST_ADMIN_TOKEN: 'short' }), { code: 2, stderr: /ATTEST_ADMIN_TOKEN is wrong/ });
  t.match(await run({ ATTEST_ADMIN_TOKEN: '' }), { code: 2, stderr: /ATTEST_ADMIN_TOKEN is not set/ });
  t.match(await run({ ATTEST_URL: '' }), { code: 2, stderr: /ATTEST_URL is not set/ });
});

t.test('the help of a new key names every scope', async (t) => {
  const { stdout } = await runHere(['keys', 'create', '--help']);
  for (const scope of [...SCOPES, 'service:read']) t.ok(stdout.includes(scope), scope);
});

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
