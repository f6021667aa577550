/** The admin API on a listener of its own, in a process of its own, over real sockets. */
import t from 'tap';
import { ADMIN_METHODS } from '../../support/calling/admin.js';
import { runProcess } from '../../support/calling/run-cli.js';
import { REFLECTION_VERSIONS, reflect, servicesOf } from '../../support/calling/stock-grpc.js';
import { makeInstallation } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';

const installation = await makeInstallation(t, { env: { ADMIN_PORT: '0' } });
const token = installation.env.ADMIN_TOKEN ?? '';
const api = await installation.startApi();

/** A call without a request, and the status and text of the answer. */
async function call(url: string, rpc: string, contentType = 'application/json', bearer = token) {
  const headers = { 'content-type': contentType, authorization: `Bearer ${bearer}` };
  const body = contentType === 'application/json' ? '{}' : new Uint8Array(5);
  const answer = await fetch(`${url}/${rpc}`, { method: 'POST', headers, body });
  return { status: answer.status, grpc: answer.headers.get('grpc-status'), text: await answer.text() };
}

t.test('the public port answers an admin RPC like one that does not exist', async (t) => {
  const comparable = ({ text, ...rest }: Awaited<ReturnType<typeof call>>) => ({
    ...rest,
    text: text.replace(/req_\w+/g, '').replace(/"value":"[^"]*"/g, ''),
  });
  for (const { parent, name } of ADMIN_METHODS) {
    for (const type of ['application/json', 'application/grpc-web+proto']) {
      const there = await call(api.baseUrl, `${parent.typeName}/${name}`, type);
      t.strictSame(comparable(there), comparable(await call(api.baseUrl, 'attestation.v1.No/Such', type)));
      const { grpc } = await call(api.adminUrl, `${parent.typeName}/${name}`, type);
      t.not(grpc, '12', `${name} is on the admin port`);
    }
    const { status } = await call(api.adminUrl, `${parent.typeName}/${name}`);
    t.ok([200, 400].includes(status) || name.startsWith('Get'), `${name}: ${status}`);
  }
});

t.test(
  'reflection names the admin API on its own port alone, and there nothing of the public one',
  async (t) => {
    for (const version of REFLECTION_VERSIONS) {
      const listed = async (url: string) => {
        const [answer = {}] = await reflect(url, version, [{ list_services: '' }]);
        return servicesOf(answer).filter((name) => name.startsWith('attestation.'));
      };
      const isAdmin = (name: string) => name.startsWith('attestation.admin.v1.');
      const open = await listed(api.baseUrl);
      t.ok(open.length > 0 && !open.some(isAdmin), open.join());
      const own = await listed(api.adminUrl);
      t.ok(own.length > 0 && own.every(isAdmin), own.join());
    }
    t.equal((await fetch(`${api.adminUrl}/v1/service/health`)).status, 401, 'for sessions only');
    t.equal((await fetch(`${api.adminUrl}/dashboard`)).status, 200);
    t.equal((await fetch(`${api.baseUrl}/dashboard`)).status, 404);
    t.equal((await fetch(`${api.adminUrl}/verify`)).status, 404);
  },
);

t.test(
  'wrong tokens are slowed down there, the right one is not, and the log names the listener',
  async (t) => {
    const rpc = 'attestation.admin.v1.ProjectService/ListProjects';
    const wrong = Array.from({ length: 70 }, () =>
      call(api.adminUrl, rpc, 'application/json', 'x'.repeat(30)),
    );
    const right = await call(api.adminUrl, rpc);
    t.equal(right.status, 200);
    const statuses = (await Promise.all(wrong)).map(({ status }) => status);
    t.ok(statuses.includes(401) && statuses.includes(503), [...new Set(statuses)].join());
    await until('the line of an admin call', async () =>
      api.lines.some(({ listener, rpc }) => listener === 'admin' && rpc !== undefined),
    );
    t.notOk(api.lines.some(({ listener, path }) => listener === 'admin' && path === '/v1/service/me'));
  },
);

t.test('commands read its address from ATTEST_ADMIN_URL, and --url takes precedence', async (t) => {
  const env = { ATTEST_URL: api.baseUrl, ATTEST_ADMIN_TOKEN: token, DATA_DIR: '/nowhere' };
  const run = (more: Record<string, string>, ...flags: string[]) =>
    runProcess(['projects', 'list', ...flags], { ...env, ...more });
  t.match(await run({ ATTEST_ADMIN_URL: api.adminUrl }), { code: 0 });
  t.match(await run({}, '--url', api.adminUrl), { code: 0 });
  t.match(await run({ ATTEST_ADMIN_URL: api.adminUrl }, '--url', api.baseUrl), {
    code: 1,
    stderr: /has no admin API: .* ATTEST_ADMIN_URL/,
  });
  t.match(await run({}), { code: 1, stderr: /has no admin API/ });
});

t.test('a listener without a token does not start', async (t) => {
  const { stderr, code } = await runProcess(['api'], { ...installation.env, ADMIN_TOKEN: '' });
  t.not(code, 0);
  t.match(stderr, /ADMIN_PORT is set, expected a valid ADMIN_TOKEN or OIDC_ISSUER beside it/);
});

t.test('it stops with its process', async (t) => {
  await api.stop();
  await t.rejects(fetch(api.adminUrl));
});
