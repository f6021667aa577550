/** `attest audit-log`: filters and lengths. */
import t from 'tap';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startAdmin } from './admin-commands.js';

const { app, attest, json } = await startAdmin(t);

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

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
