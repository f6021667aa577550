/** `attest projects`: the first project and its key, changes and lists. */
import t from 'tap';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startAdmin } from './admin-commands.js';

const { app, attest, json, works } = await startAdmin(t);

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

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
