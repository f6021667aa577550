/** `attest trust`, and commands that find the token of a CI job by themselves. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { runHere } from '../support/calling/run-cli.js';
import { newKey } from '../support/calling/test-keys.js';
import { githubClaims, gitlabClaims, startIssuer } from '../support/identities/issuer.js';

const app = await startApp(t);
const issuer = await startIssuer(t);
const { projectId } = await newKey(app);
const dir = await mkdtemp(join(tmpdir(), 'attest-trust-'));
t.teardown(() => rm(dir, { recursive: true }));
const admin = { ATTEST_ADMIN_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: adminOf(app).token, DATA_DIR: dir };

async function trust(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runHere(['trust', ...args, '--json'], { env: admin });
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

async function submit(env: Record<string, string>, ...args: string[]) {
  const file = join(dir, `${randomBytes(8).toString('hex')}.txt`);
  await writeFile(file, randomBytes(32));
  const metadata = '{"purl": "pkg:generic/a@1"}';
  const flags = ['--schema', 'purl', '--metadata', metadata, '--json', ...args];
  const { code, stdout, stderr } = await runHere(['submit', file, ...flags], {
    env: { ATTEST_URL: app.baseUrl, DATA_DIR: dir, ...env },
  });
  return { code, stderr, output: code === 0 ? JSON.parse(stdout) : undefined };
}

/** The service of GitHub Actions that issues a job its tokens, as its documentation has it. */
async function startActions(): Promise<{ env: Record<string, string>; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer(async (request, response) => {
    requests.push(request);
    const audience = new URL(request.url ?? '', 'http://localhost').searchParams.get('audience') ?? '';
    if (request.headers.authorization !== 'Bearer the job') response.writeHead(401);
    response.end(JSON.stringify({ value: await issuer.sign(githubClaims(issuer.url, audience)) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    env: {
      ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${port}/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'the job',
    },
    requests,
  };
}

t.test('rules are added, listed, shown and removed', async (t) => {
  const github = await trust(
    'add',
    '--github',
    'acme/app',
    '--project',
    projectId,
    '--claim',
    'ref=refs/heads/*',
  );
  t.match(github, {
    issuer: 'https://token.actions.githubusercontent.com',
    environment: 'live',
    conditions: { repository: 'acme/app', ref: 'refs/heads/*' },
    recorded_claims: ['repository', 'ref', 'sha', 'workflow_ref', 'run_id'],
    reusable_tokens: false,
  });
  const own = ['--issuer', issuer.url, '--environment', 'test', '--project', projectId];
  const gitlab = await trust('add', '--gitlab', 'acme/*', ...own, '--submissions-per-hour', '7');
  t.match(gitlab, {
    issuer: issuer.url,
    environment: 'test',
    conditions: { project_path: 'acme/*' },
    recorded_claims: ['project_path', 'ref', 'sha', 'pipeline_id', 'job_id'],
    reusable_tokens: true,
    limits: { submissions_per_second: 60, submissions_per_hour: 7 },
  });
  const listed = (await trust('list', '--project', projectId)) as unknown as { id: string }[];
  t.same(
    listed.map(({ id }) => id),
    [gitlab.id, github.id],
  );
  const shown = await runHere(['trust', 'list'], { env: admin });
  t.match(shown.stdout, /acme\/app ref=|ref=refs\/heads\/\* repository=acme\/app/);
  const one = await runHere(['trust', 'get', String(gitlab.id)], { env: admin });
  t.match(one.stdout, /conditions +project_path=acme\/\*\n/);
  for (const { id } of [github, gitlab]) await trust('remove', String(id));
  t.match(await trust('get', String(github.id)), { removed_at: /^20/ });
  t.same(await trust('list', '--project', projectId), []);
});

t.test('what trusts everybody is a wrong rule', async (t) => {
  const wrong = async (...args: string[]) => {
    const { code, stderr } = await runHere(['trust', 'add', '--project', projectId, ...args], { env: admin });
    t.not(code, 0);
    return stderr;
  };
  t.match(await wrong(), /name whom to trust/);
  t.match(await wrong('--github', '*'), /conditions/);
  t.match(await wrong('--github', 'acme*'), /names an owner before its first \*/);
  t.match(await wrong('--github', '*/app'), /names an owner before its first \*/);
  t.match(await wrong('--gitlab', '*'), /conditions/);
  t.match(await wrong('--issuer', 'https://gitlab.com', '--claim', 'ref=main'), /names an owner/);
  t.match(await wrong('--issuer', issuer.url, '--claim', 'sub=**'), /not only \*/);
  t.match(await wrong('--issuer', issuer.url, '--claim', 'aud=x'), /takes no condition/);
  t.match(await wrong('--issuer', issuer.url, '--claim', 'sub'), /form name=pattern/);
  t.match(await wrong('--issuer', issuer.url), /conditions/);
  t.match(await wrong('--issuer', 'https://10.0.0.1', '--claim', 'sub=x'), /cannot be called/);
  t.match(await wrong('--issuer', 'nonsense', '--claim', 'sub=x'), /https address/);
});

t.test('a job of GitHub Actions submits with an address and nothing secret', async (t) => {
  const { id } = await trust('add', '--issuer', issuer.url, '--github', 'acme/app', '--project', projectId);
  const actions = await startActions();
  const { code, stderr, output } = await submit(actions.env);
  t.equal(code, 0, stderr);
  t.match(JSON.stringify(output), /sub_/);
  t.equal(actions.requests.length, 1);
  const me = await runHere(['me'], { env: { ATTEST_URL: app.baseUrl, DATA_DIR: dir, ...actions.env } });
  t.match(me.stdout, /subject +repo:acme\/app:ref:refs\/heads\/main/);
  t.match(me.stdout, /run_id +9302176411/);
  const other = await submit({ ...actions.env, ATTEST_AUDIENCE: 'https://elsewhere.example.com' });
  t.match(other, { code: 1, stderr: /token\.not_trusted/ });
  const without = await submit({ ...actions.env, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'another' });
  t.match(without, { code: 1, stderr: /GitHub Actions issues no token for this job \(HTTP 401\)/ });
  await trust('remove', String(id));
});

t.test('a job of GitLab CI submits by its one token, again and again', async (t) => {
  const rule = ['--issuer', issuer.url, '--gitlab', 'acme/app', '--project', projectId];
  const [live, test] = [await trust('add', ...rule), await trust('add', ...rule, '--environment', 'test')];
  const env = { ATTEST_ID_TOKEN: await issuer.sign(gitlabClaims(issuer.url, app.baseUrl)) };
  t.match(await submit(env), { code: 1, stderr: /environment/ });
  for (let n = 0; n < 2; n++) t.equal((await submit(env, '--environment', 'live')).code, 0);
  t.equal((await submit({ ...env, ATTEST_PROJECT: projectId }, '--environment', 'test')).code, 0);
  t.match(await submit({ ATTEST_ID_TOKEN: 'nonsense' }), { code: 2, stderr: /ATTEST_ID_TOKEN/ });
  t.match(await submit({}), { code: 2, stderr: /ATTEST_API_KEY/ });
  for (const { id } of [live, test]) await trust('remove', String(id));
});
