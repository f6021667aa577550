import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { Agent, request } from 'undici';
import { findDestinationProblem, guardedConnector, isPublicAddress } from '../../src/net/destination.js';

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

t.test('what may not be called is told why', async (t) => {
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
    ['https://0/', /public/],
    ['https://[::1]/', /public/],
    ['https://[::ffff:10.0.0.1]/', /public/],
    ['https://[64:ff9b::a00:1]/', /public/],
    ['https://169.254.169.254/latest/meta-data', /public/],
  ] as const) {
    t.match((await findDestinationProblem(strict, url)) ?? 'may be called', why, url);
  }
});

t.test(
  'an installation that allows it calls http and any address, and nothing that is no web address',
  async (t) => {
    const lax = { allowInsecure: true, resolve };
    t.equal(await findDestinationProblem(lax, 'http://127.0.0.1:80/'), undefined);
    t.equal(await findDestinationProblem(lax, 'http://unknown.example/'), undefined);
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
    '2002:a00:1::',
    '2001:db8::1',
    'nonsense',
  ]) {
    t.notOk(isPublicAddress(address), address);
  }
});

t.test('a connection to an address that is not public is never opened, by number or by name', async (t) => {
  let connections = 0;
  const server = createServer((_request, response) => void response.end('inside'));
  server.on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const dispatcher = new Agent({ connect: guardedConnector({ allowInsecure: false }) });
  t.teardown(() => dispatcher.close());
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
    await t.rejects(request(`http://${host}:${port}/`, { dispatcher }), /not a public address/, host);
  }
  t.equal(connections, 0);
  const lax = new Agent({ connect: guardedConnector({ allowInsecure: true }) });
  t.teardown(() => lax.close());
  const { body } = await request(`http://127.0.0.1:${port}/`, { dispatcher: lax });
  t.equal(await body.text(), 'inside');
});
