/** Errors of commands with the admin token: wrong requests, tokens and addresses. */
import t from 'tap';
import { runHere } from '../../support/calling/run-cli.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startAdmin } from './admin-commands.js';

const { app, env, attest, json } = await startAdmin(t);

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

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
