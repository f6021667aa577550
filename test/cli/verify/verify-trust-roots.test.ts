/** Trust roots that are fetched from the service. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { createApiKey } from '../../../src/server/keys/api-key.js';
import { trustRoots } from '../../proof/verifying.js';
import { runHere } from '../../support/calling/run-cli.js';
import { listen } from '../../support/servers/rpc-server.js';
import { folder } from './artifact-folder.js';

t.test('without a local copy trust roots are fetched from the service, which is reported', async (t) => {
  let answer = { status: 200, body: JSON.stringify(trustRoots) };
  const paths: unknown[] = [];
  const url = await listen(
    t,
    createServer(({ url }, response) => {
      paths.push(url);
      response.writeHead(answer.status, { location: '/elsewhere' }).end(answer.body);
    }),
  );
  const { at, dir } = folder(t, { 'credentials.json': credentials(url) });
  const args = ['verify', at('artifact'), '--bundle', at('bundle.json')];
  const origins: [flags: string[], env: Record<string, string>, path: string, from: string][] = [
    [['--verify-url', `${url}/v`], {}, '/v/trust_roots.json', '--verify-url'],
    [
      [],
      { ATTEST_VERIFY_URL: url, ATTEST_URL: 'http://127.0.0.1:9' },
      '/trust_roots.json',
      'ATTEST_VERIFY_URL',
    ],
    [[], { ATTEST_URL: url }, '/verify/trust_roots.json', 'ATTEST_URL'],
    [['--data-dir', dir], {}, '/mirror/trust_roots.json', at('credentials.json')],
  ];
  for (const [flags, env, path, from] of origins) {
    const { code, stdout } = await runHere([...args, ...flags], { env });
    t.equal(code, 0, from);
    t.equal(paths.at(-1), path);
    const said = `Trusting ${url}${path}, fetched now and trusted as served (address from ${from})\n`;
    t.ok(stdout.includes(said), said);
  }
  for (const [status, body, message] of [
    [404, '', /HTTP 404/],
    [302, '', /cannot be fetched/],
    [200, '<html>', /are not valid JSON/],
    [200, ' '.repeat(4 * 1024 * 1024 + 1), /larger than 4 MiB/],
  ] as const) {
    answer = { status, body };
    const { code, stderr } = await runHere([...args, '--verify-url', url]);
    t.equal(code, 2);
    t.match(stderr, message);
  }
});

function credentials(url: string): string {
  const key = createApiKey(Environment.LIVE, randomBytes);
  return JSON.stringify({ base_url: url, verify_url: `${url}/mirror`, live_key: key, test_key: key });
}
