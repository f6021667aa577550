/** `attest keys`: from the creation of a key to its revocation, and lists. */
import t from 'tap';
import { SCOPES } from '../../../src/protocol/scopes.js';
import { runHere } from '../../support/calling/run-cli.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startAdmin } from './admin-commands.js';

const { app, attest, json, works } = await startAdmin(t);

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

t.test('the help of a new key names every scope', async (t) => {
  const { stdout } = await runHere(['keys', 'create', '--help']);
  for (const scope of [...SCOPES, 'service:read']) t.ok(stdout.includes(scope), scope);
});

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
