/** `attest people`, and where other commands name people. */
import t from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { TrustRuleService } from '../../gen/attestation/admin/v1/trust_rules_pb.js';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { runHere } from '../support/calling/run-cli.js';
import { newKey } from '../support/calling/test-keys.js';
import { signInAs, startLoginProvider } from '../support/identities/login-provider.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, TRUSTED_PROXIES: '127.0.0.0/8,::1' },
});
provider.register(app);
const { projectId } = await newKey(app);
const env = { ATTEST_ADMIN_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: adminOf(app).token };

const attest = (...args: string[]) => runHere(args, { env });

async function shown(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await attest(...args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

const json = async (...args: string[]) => JSON.parse(await shown('people', ...args, '--json'));

const inProject = ['--project', projectId];

function account(name: string, more: Record<string, unknown> = {}): string {
  provider.accounts.set(name, { name, email: `${name}@example.com`, email_verified: true, ...more });
  return name;
}

/** Signs in somebody new with the link of an invitation. */
async function accept(name: string, link: string) {
  const secret = new URL(link.trim()).hash.slice(1);
  app.recorder.secrets.add(secret);
  const { browser, outcome } = await signInAs(app, account(name), secret);
  if (outcome.code !== 'ok') throw new Error(`${name}: ${outcome.code} ${outcome.message}`);
  return { browser, id: (outcome.response.person as { id: string }).id };
}

t.test('a person is invited, gets another role, and is removed with what she made', async (t) => {
  t.equal(await shown('people', 'list', ...inProject), 'no people\n');
  const made = ['people', 'invite', '--email', 'ada@example.com', '--role', 'admin', ...inProject];
  const link = await attest(...made);
  t.match(link, {
    code: 0,
    stdout: /^\S+\/dashboard\/invitation#\S+\n$/,
    stderr: /^inv_\w+: works once, until/,
  });
  t.match(await shown('people', 'invitations'), /ada@example\.com +admin/);
  const { browser, id } = await accept('ada', link.stdout);
  t.equal(await shown('people', 'invitations', ...inProject), 'no invitations\n');
  t.match(await shown('people', 'list', ...inProject), /ada <ada@example\.com> +admin +prj_\w+ +invitation/);
  const { response: key } = await browser.call(ApiKeyService.method.createApiKey, {
    projectId,
    environment: 1,
    name: 'hers',
  });
  app.recorder.secrets.add(String(key.secret));
  const { response: trust } = await browser.call(TrustRuleService.method.createTrustRule, {
    projectId,
    environment: 1,
    issuer: app.baseUrl,
    conditions: { repository: 'acme/app' },
  });
  const her = /ada <ada@example\.com>/;
  t.match(await shown('keys', 'list', ...inProject), her);
  t.match(await shown('keys', 'get', String(key.id)), /created by +ada <ada@example\.com>/);
  t.match(await shown('trust', 'list', ...inProject), her);
  t.match(await shown('trust', 'get', String(trust.id)), /created by +ada <ada@example\.com>/);
  t.match(await shown('dashboard', 'sessions'), /PERSON\n.*ada <ada@example\.com>/);
  t.match(await shown('audit-log', ...inProject), /ada <ada@example\.com> \(ses_/);
  t.match(await shown('people', 'role', id, 'viewer', ...inProject), /is viewer now, by invitation/);
  t.match(await json('role', id, 'member', ...inProject), { role: 'member', person: { id } });
  const removed = await shown('people', 'remove', id, ...inProject);
  t.match(removed, `${id} is removed\n`);
  t.match(removed, `stay in force: ${key.id} ${trust.id}\nthe same command with --revoke-credentials`);
  const revoked = await json('remove', id, ...inProject, '--revoke-credentials');
  t.match(revoked, { api_key_ids: [key.id], trust_rule_ids: [trust.id] });
  t.match(await shown('keys', 'get', String(key.id)), /state +revoked/);
  t.match(await attest('people', 'remove', id, ...inProject), { code: 1, stderr: /has no role in prj_/ });
});

t.test('rules give roles, and again after a removal', async (t) => {
  const rule = await json('rules', 'add', '--role', 'viewer', 'groups=acme/*', ...inProject);
  t.match(rule, { id: /^rol_/, role: 'viewer', conditions: { groups: 'acme/*' } });
  t.match(await shown('people', 'rules', 'list'), /groups=acme\/\* +viewer/);
  await signInAs(app, account('rut', { groups: ['acme/devs'] }));
  const [{ person } = { person: { id: '' } }] = await json('list', ...inProject);
  const removed = await shown('people', 'remove', person.id, ...inProject);
  t.match(removed, `again at the next sign-in: ${rule.id}`);
  t.match(await shown('people', 'rules', 'remove', rule.id), 'is removed');
  t.same(await json('rules', 'list'), []);
  t.match(await attest('people', 'rules', 'remove', rule.id), { code: 1, stderr: /no such role rule/ });
});

t.test('an operator is of no project, and an invitation is taken back', async (t) => {
  const { id, url } = await json('invite', '--role', 'operator', '--lifetime', '1h');
  app.recorder.secrets.add(new URL(url).hash.slice(1));
  t.match(await json('invitations'), [{ id, role: 'operator' }]);
  t.match(await shown('people', 'uninvite', id), `${id} is taken back`);
  t.match(await attest('people', 'uninvite', id), { code: 1, stderr: /no such invitation/ });
  const op = await accept('opa', await shown('people', 'invite', '--role', 'operator'));
  t.match(await shown('people', 'list'), /opa <opa@example\.com> +operator/);
  t.match(await shown('people', 'remove', op.id, '--operator'), `${op.id} is removed`);
});

t.test('bad input is said', async (t) => {
  const table: [args: string[], code: number, stderr: RegExp][] = [
    [['invite', '--role', 'boss'], 2, /viewer, member, admin, operator/],
    [['invite'], 2, /--role/],
    [['role', 'per_x', 'boss'], 2, /viewer, member, admin, operator/],
    [['role', 'per_x', 'admin', ...inProject], 1, /person_id.*nobody who has a role/],
    [['invite', '--role', 'viewer', '--email', 'nobody', ...inProject], 1, /e-mail address/],
    [['invite', '--role', 'viewer', '--lifetime', '31d', ...inProject], 2, /--lifetime/],
    [['invite', '--role', 'operator', ...inProject], 2, /leave --project out/],
    [['list', '--project', 'prj_none'], 1, /project\.not_found/],
    [['invite', '--role', 'viewer', '--project', 'prj_none'], 1, /project\.not_found/],
    [['rules', 'add', '--role', 'viewer', 'groups', ...inProject], 2, /form name=pattern/],
    [['rules', 'add', '--role', 'viewer', 'groups=*', ...inProject], 1, /conditions/],
    [['remove', 'per_x', '--operator', ...inProject], 2, /--operator.*--project/],
  ];
  for (const [args, code, stderr] of table) {
    t.match(await attest('people', ...args), { code, stderr }, args.join(' '));
  }
});
