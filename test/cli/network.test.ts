/** Commands and programs behind a proxy, and a service whose certificate is by a company's own authority. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { AttestationService, SubmissionStatus } from '../../gen/attestation/v1/attestations_pb.js';
import { type ConnectProxy, startConnectProxy } from '../support/calling/connect-proxy.js';
import { runProcess } from '../support/calling/run-cli.js';
import { makeServerTls } from '../support/certificates/server-tls.js';
import { serveRpc } from '../support/servers/rpc-server.js';
import { KEYS } from './submit/submitting.js';

const { tls, caFile } = await makeServerTls(t);

async function serveTls(t: Test) {
  const { baseUrl, requests } = await serveRpc(
    t,
    ({ service }) => {
      service(AttestationService, {
        batchCreateAttestations: ({ items }) => ({
          results: items.map(() => ({ submission: { id: 'sub_1', status: SubmissionStatus.QUEUED } })),
        }),
        getAttestation: ({ id }) => ({ id, status: SubmissionStatus.QUEUED }),
      });
    },
    tls,
  );
  return { requests, host: new URL(baseUrl).host, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test } };
}

const LIBRARY = new URL('../../src/client/client.js', import.meta.url).href;
const PROGRAM = `
  const { createClient } = await import(${JSON.stringify(LIBRARY)});
  const { ATTEST_URL: baseUrl, ATTEST_API_KEY: apiKey } = process.env;
  try {
    const client = createClient({ baseUrl, apiKey });
    console.log((await client.attestations.get('sub_1')).id);
  } catch (error) {
    console.log(error.name + ': ' + error.message);
  }`;

type Run = (env: Record<string, string>) => Promise<string>;

/** The command line, and a program that imports the library; each by its environment. */
function callers(t: Test): [name: string, run: Run][] {
  const file = join(t.testdir({ file: 'text', 'no-certificate': 'text' }), 'file');
  return [
    [
      'attest submit',
      async (env) => {
        const { stdout, stderr } = await runProcess(['submit', file, '--quiet'], env);
        return stdout + stderr;
      },
    ],
    [
      'the client library',
      async (env) => {
        const args = ['--input-type=module', '-e', PROGRAM];
        return (await promisify(execFile)(process.execPath, args, { env })).stdout;
      },
    ],
  ];
}

t.test('a private authority is trusted by ATTEST_CA_FILE, which the error without it names', async (t) => {
  const { env, requests } = await serveTls(t);
  for (const [name, run] of callers(t)) {
    t.match(await run(env), /certificate.*: set ATTEST_CA_FILE to a PEM file/, name);
    t.equal(requests.length, 0);
    t.equal(await run({ ...env, ATTEST_CA_FILE: caFile }), 'sub_1\n', name);
    t.equal(requests.splice(0).length, 1, name);
    t.match(await run({ ...env, ATTEST_CA_FILE: '/nonexistent' }), /ATTEST_CA_FILE cannot be read/, name);
    const noCertificate = join(t.testdirName, 'no-certificate');
    t.match(await run({ ...env, ATTEST_CA_FILE: noCertificate }), /has no certificate in PEM/, name);
  }
});

t.test('HTTPS_PROXY has https go through a proxy, except to the hosts of NO_PROXY', async (t) => {
  const { env: own, host, requests } = await serveTls(t);
  const env = { ...own, ATTEST_CA_FILE: caFile };
  const proxy = await startConnectProxy(t);
  const tunnelled = async ({ tunnels }: ConnectProxy, run: Run, more: Record<string, string>) => {
    t.equal(await run({ ...env, ...more }), 'sub_1\n');
    t.equal(requests.splice(0).length, 1);
    return tunnels.splice(0);
  };
  for (const [name, run] of callers(t)) {
    t.strictSame(await tunnelled(proxy, run, { HTTPS_PROXY: proxy.url }), [host], name);
    t.strictSame(await tunnelled(proxy, run, { https_proxy: proxy.url }), [host], name);
    const except = (NO_PROXY: string) => tunnelled(proxy, run, { HTTPS_PROXY: proxy.url, NO_PROXY });
    t.strictSame(await except('example.com,127.0.0.1'), [], name);
    t.strictSame(await except('example.com'), [host], name);
    t.strictSame(await tunnelled(proxy, run, { HTTP_PROXY: proxy.url }), [], name);
  }
});

t.test('the error of a proxy names HTTPS_PROXY', async (t) => {
  const { env, requests } = await serveTls(t);
  const refusing = await startConnectProxy(t, 407);
  const [[, run]] = callers(t) as [[string, Run]];
  t.match(await run({ ...env, HTTPS_PROXY: refusing.url }), /the proxy that HTTPS_PROXY names answered 407/);
  for (const [name, call] of callers(t)) {
    t.match(
      await call({ ...env, HTTPS_PROXY: 'proxy:3128' }),
      /HTTPS_PROXY is not the address of a proxy/,
      name,
    );
  }
  t.equal(requests.length, 0);
});

t.test('a service by http is called without a proxy', async (t) => {
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, { getAttestation: ({ id }) => ({ id }) });
  });
  const proxy = await startConnectProxy(t);
  const [, [, run]] = callers(t) as [unknown, [string, Run]];
  const env = {
    ATTEST_URL: baseUrl,
    ATTEST_API_KEY: KEYS.test,
    HTTPS_PROXY: proxy.url,
    HTTP_PROXY: proxy.url,
  };
  t.equal(await run(env), 'sub_1\n');
  t.equal(requests.length, 1);
  t.strictSame(proxy.tunnels, []);
});

t.test('trust roots are fetched the same way', async (t) => {
  const { env, requests } = await serveTls(t);
  const dir = t.testdir({});
  writeFileSync(join(dir, 'file'), 'text');
  const args = ['verify', join(dir, 'file'), '--bundle', join(dir, 'file')];
  const fetchRoots = async (more: Record<string, string>) =>
    (await runProcess(args, { ATTEST_VERIFY_URL: env.ATTEST_URL, ...more })).stderr;
  t.match(await fetchRoots({}), /trust roots cannot be fetched.*set ATTEST_CA_FILE/);
  t.equal(requests.length, 0);
  const proxy = await startConnectProxy(t);
  t.match(
    await fetchRoots({ ATTEST_CA_FILE: caFile, HTTPS_PROXY: proxy.url }),
    /trust roots cannot be fetched.*404/,
  );
  t.not(proxy.tunnels.length, 0);
});
