import { once } from 'node:events';
import { createServer, get } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { Agent, request } from 'undici';
import {
  findCallableAddresses,
  findDestinationProblem,
  guardedAgents,
  guardedConnector,
  isPublicAddress,
  resolveByDns,
} from '../../../src/server/net/destination.js';

const NAMES: Record<string, string[]> = {
  'public.example': ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'],
  'inside.example': ['10.0.0.5'],
  'half.example': ['93.184.216.34', '127.0.0.1'],
};
const resolve = async (name: string) => NAMES[name] ?? Promise.reject(new Error('ENOTFOUND'));
const strict = { allowInsecure: false, resolve };

t.test('an https address on the public internet may be called', async (t) => {
  for (const url of [
    'https://public.example/hook?a=b',
    'https://public.example:8443/',
    'https://93.184.216.34/',
    'https://[2606:2800:220:1:248:1893:25c8:1946]/',
  ]) {
    t.equal(await findDestinationProblem(strict, url), undefined, url);
  }
});

t.test('a forbidden destination is rejected with the reason', async (t) => {
  for (const [url, why] of [
    ['nonsense', /not a url/],
    ['http://public.example/', /https/],
    ['ftp://public.example/', /https/],
    ['javascript:alert(1)', /https/],
    ['https://user@public.example/', /credentials/],
    ['https://:pw@public.example/', /credentials/],
    ['https://public.example/#x', /fragment/],
    ['https://public.example:80/', /port/],
    ['https://public.example:22/', /port/],
    ['https://unknown.example/', /has no address/],
    ['https://inside.example/', /public/],
    ['https://half.example/', /public/],
    ['https://127.0.0.1/', /public/],
    ['https://2130706433/', /public/],
    ['https://0x7f.1/', /public/],
    ['https://0177.0.0.1/', /public/],
    ['https://127.1/', /public/],
    ['https://127.0.0.1./', /public/],
    ['https://127.0.0.1%00.example/', /not a url/],
    ['https://%31%32%37.0.0.1/', /public/],
    ['https://168.63.129.16/', /public/],
    ['https://100.100.100.200/', /public/],
    ['https://[64:ff9b:1::7f00:1]/', /public/],
    ['https://[2001:0:7f00:1::]/', /public/],
    ['https://127.0.0.1@public.example/', /credentials/],
    ['https://１２７.0.0.1/', /public/],
    ['https:/\\127.0.0.1/', /https:\/\/, a host/],
    ['https:public.example', /https:\/\/, a host/],
    ['https:///public.example', /https:\/\/, a host/],
    [' https://public.example/', /without spaces/],
    ['https://public.example/a\nb', /without spaces/],
    ['https://0/', /public/],
    ['https://public.example:0/', /port/],
    ['https://[::1%25lo]/', /not a url/],
    ['https://[fe80::1]/', /public/],
    ['https://[::7f00:1]/', /public/],
    ['https://[2002:7f00:1::]/', /public/],
    ['https://localhost./', /no address/],
    ['https://inside。example/', /public/],
    ['https://ⓘnside.example/', /public/],
    ['https://[::1]/', /public/],
    ['https://[::ffff:10.0.0.1]/', /public/],
    ['https://[64:ff9b::a00:1]/', /public/],
    ['https://169.254.169.254/latest/meta-data', /public/],
  ] as const) {
    t.match((await findDestinationProblem(strict, url)) ?? 'may be called', why, url);
  }
});

t.test(
  'an installation with the setting calls http and loopback, and no other private address',
  async (t) => {
    const lax = { allowInsecure: true, resolve };
    for (const url of [
      'http://127.0.0.1:80/',
      'http://[::1]/',
      'http://unknown.example/',
      'http://93.184.216.34/',
    ]) {
      t.equal(await findDestinationProblem(lax, url), undefined, url);
    }
    for (const url of [
      'http://10.0.0.5/',
      'http://169.254.169.254/',
      'http://0.0.0.0/',
      'http://[fe80::1]/',
    ]) {
      t.match(await findDestinationProblem(lax, url), /public/, url);
    }
    t.match(await findDestinationProblem(lax, 'file:///etc/passwd'), /https/);
    t.match(await findDestinationProblem(lax, 'http://a:b@localhost/'), /credentials/);
  },
);

t.test('private, reserved and translated addresses are not public', async (t) => {
  for (const address of [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.53',
    '169.254.169.254',
    '168.63.129.16',
    '172.16.0.1',
    '192.168.0.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'ff02::1',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '203.0.113.1',
    '240.0.0.1',
    '2002:a00:1::',
    '2002:5db8:d822::',
    '2001:0:5db8:d822::1',
    '2001:db8::1',
    '3fff::1',
    '5f00::1',
    '4000::1',
    '100::1',
    'fec0::1',
    '64:ff9b::8.8.8.8',
    '64:ff9b:1::1',
    '::ffff:8.8.8.8',
    '::ffff:0:8.8.8.8',
    '::8.8.8.8',
    '::10.0.0.1',
    '8.8.8',
    '010.8.8.8',
    '0x8.8.8.8',
    '8.8.8.8 ',
    '2606:4700::1111%eth0',
    'nonsense',
  ]) {
    t.notOk(isPublicAddress(address), address);
  }
  for (const address of ['8.8.8.8', '93.184.216.34', '2606:4700::1111', '2a00:1450::1']) {
    t.ok(isPublicAddress(address), address);
  }
});

t.test('localhost is this machine, with no question to anybody', async (t) => {
  for (const name of ['localhost', 'localhost.', 'a.localhost']) {
    t.same(await resolveByDns(name), ['127.0.0.1', '::1']);
  }
});

/** A server of this machine, and how often somebody has connected to it. */
async function startInside(t: Test) {
  const seen = { connections: 0 };
  const server = createServer((_request, response) => void response.end('inside'));
  server.on('connection', () => seen.connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { seen, port: (server.address() as AddressInfo).port };
}

function agentOf(t: Test, options: Parameters<typeof guardedConnector>[0]): Agent {
  const dispatcher = new Agent({ connect: guardedConnector(options) });
  t.teardown(() => dispatcher.close());
  return dispatcher;
}

t.test('a connection to an address that is not public is never opened, by number or by name', async (t) => {
  const { seen, port } = await startInside(t);
  const dispatcher = agentOf(t, { allowInsecure: false });
  for (const host of ['127.0.0.1', 'localhost', 'localhost.', '[::ffff:127.0.0.1]', '[::1]', '2130706433']) {
    await t.rejects(request(`https://${host}:${port}/`, { dispatcher }), /not a public address/, host);
  }
  t.equal(seen.connections, 0);
  const lax = agentOf(t, { allowInsecure: true });
  const { body } = await request(`http://127.0.0.1:${port}/`, { dispatcher: lax });
  t.equal(await body.text(), 'inside');
  await t.rejects(request(`http://10.0.0.5:${port}/`, { dispatcher: lax }), /not a public address/);
});

t.test('an address saved under laxer rules is not connected to', async (t) => {
  const asked: string[] = [];
  const resolve = async (name: string) => {
    asked.push(name);
    return ['93.184.216.34'];
  };
  const dispatcher = agentOf(t, { allowInsecure: false, resolve });
  await t.rejects(request('http://public.example/', { dispatcher }), /must be https/);
  await t.rejects(request('http://93.184.216.34:8080/', { dispatcher }), /must be https/);
  await t.rejects(request('https://public.example:22/', { dispatcher }), /the port must be/);
  t.same(asked, []);
});

t.test('a proxy of the environment is not used', async (t) => {
  const { seen, port } = await startInside(t);
  const names = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
  for (const name of names) process.env[name] = `http://127.0.0.1:${port}`;
  t.teardown(() => names.forEach((name) => void delete process.env[name]));
  const dispatcher = agentOf(t, { allowInsecure: false, resolve: async () => ['10.0.0.5'] });
  await t.rejects(request('https://hook.example/', { dispatcher }), /not a public address/);
  t.equal(seen.connections, 0);
});

t.test('a name that is bound to another address after it was looked at is not connected to', async (t) => {
  const { seen, port } = await startInside(t);
  const answers = [['93.184.216.34'], ['127.0.0.1'], ['93.184.216.34', '127.0.0.1'], []];
  const rebinding = async () => answers.shift() ?? [];
  const rules = { allowInsecure: false, resolve: rebinding };
  t.equal(await findDestinationProblem(rules, `https://hook.example:${port}/`), undefined);
  const dispatcher = agentOf(t, rules);
  for (const when of ['all inside', 'one inside', 'none']) {
    await t.rejects(request(`https://hook.example:${port}/`, { dispatcher }), /not a public address/, when);
  }
  t.equal(seen.connections, 0);
});

t.test('a connection goes to the checked address', async (t) => {
  const { seen, port } = await startInside(t);
  const asked: string[] = [];
  const resolveHere = async (name: string) => {
    asked.push(name);
    return ['127.0.0.1'];
  };
  const dispatcher = agentOf(t, { allowInsecure: true, resolve: resolveHere });
  const { body } = await request(`http://hook.example:${port}/`, { dispatcher });
  t.equal(await body.text(), 'inside');
  t.same(asked, ['hook.example']);
  t.equal(seen.connections, 1);
});

t.test('an agent for node:http connects as the connector does', async (t) => {
  const server = createServer((_, response) => response.end('here'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const call = async (url: string, allowInsecure: boolean, addresses: string[] = []) => {
    const { httpAgent, httpsAgent } = guardedAgents({ allowInsecure, resolve: async () => addresses });
    t.teardown(() => httpAgent.destroy());
    const isSecure = url.startsWith('https:');
    const request = isSecure ? https.get(url, { agent: httpsAgent }) : get(url, { agent: httpAgent });
    const [response] = await once(request, 'response');
    return text(response);
  };
  t.equal(await call(`http://127.0.0.1:${port}/`, true), 'here');
  t.equal(await call(`http://inside.example:${port}/`, true, ['127.0.0.1']), 'here');
  for (const [url, allowInsecure, addresses, why] of [
    [`http://127.0.0.1:${port}/`, false, [], /must be https/],
    ['https://127.0.0.1/', false, [], /127.0.0.1 is not a public/],
    ['https://[::1]/', false, [], /::1 is not a public/],
    ['https://169.254.169.254/', true, [], /not a public/],
    ['https://inside.example/', false, ['93.184.216.34', '10.0.0.5'], /inside.example is not a public/],
    ['https://inside.example/', false, [], /not a public/],
    ['http://inside.example/', true, ['10.0.0.5'], /not a public/],
    ['https://public.example:22/', false, ['93.184.216.34'], /port/],
  ] as const)
    await t.rejects(call(url, allowInsecure, [...addresses]), { message: why }, url);
});

t.test('a host is called if all its addresses are permitted', async (t) => {
  const addresses = (host: string, allowInsecure = false) =>
    findCallableAddresses({ allowInsecure, resolve }, host);
  t.strictSame(await addresses('public.example'), NAMES['public.example']);
  t.strictSame(await addresses('93.184.216.34'), ['93.184.216.34']);
  t.strictSame(await addresses('[2606:2800:220:1:248:1893:25c8:1946]'), [
    '2606:2800:220:1:248:1893:25c8:1946',
  ]);
  t.strictSame(await addresses('[::1]', true), ['::1']);
  for (const host of ['inside.example', 'half.example', '127.0.0.1', '[::1]', '10.0.0.5'])
    await t.rejects(addresses(host), /not a public address/, host);
  await t.rejects(addresses('10.0.0.5', true), /not a public address/);
  await t.rejects(addresses('unknown.example'), /ENOTFOUND/);
});
