import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import {
  type S3Options as OpenOptions,
  openS3,
} from '../../../../../src/server/exports/destinations/s3/s3.js';
import { makeServerTls } from '../../../../support/certificates/server-tls.js';
import {
  contextOf,
  OWNER,
  objectOf,
  openBucket,
  startStore,
  writing,
} from '../../../../support/exports/s3/fixture.js';

const { signal } = new AbortController();
const { tls, caFile } = await makeServerTls(t, 'DNS:store.example');
const ca = await readFile(caFile, 'utf8');

/** A destination that no development is allowed for. */
async function openStrict(t: Test, endpoint: string, options: OpenOptions = {}) {
  const bucket = await openS3(contextOf({ ...OWNER, endpoint }, { allowInsecure: false }), options);
  t.teardown(() => bucket.close());
  return bucket;
}

t.test('a store is called by https, with its own CA', async (t) => {
  const server = await startStore(t, { tls });
  const endpoint = server.url.replace('127.0.0.1', 'store.example');
  const resolve = async () => ['127.0.0.1'];
  await (await openBucket(t, { url: endpoint }, {}, { resolve, ca })).probe(signal);
  const untrusted = await openBucket(t, { url: endpoint }, {}, { resolve });
  await t.rejects(untrusted.probe(signal), /^the host has a certificate that is not trusted/);
  const otherName = await openBucket(t, server, {}, { ca });
  await t.rejects(otherName.probe(signal), /^the host has a certificate that is not trusted/);
});

t.test('a host inside is never called', async (t) => {
  const server = await startStore(t, { tls });
  const { port } = new URL(server.url);
  for (const host of [
    '127.0.0.1',
    '169.254.169.254',
    '10.0.0.5',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
  ]) {
    const bucket = await openStrict(t, `https://${host}:${port}`, { ca });
    await t.rejects(
      bucket.probe(signal),
      { name: 'DestinationError', message: /not a public address/ },
      host,
    );
  }
  const addresses: string[][] = [['127.0.0.1'], ['93.184.216.34', '127.0.0.1'], ['fd00::1'], []];
  for (const found of addresses) {
    const bucket = await openStrict(t, `https://store.example:${port}`, { ca, resolve: async () => found });
    await t.rejects(bucket.probe(signal), /not a public address/, found.join());
  }
  const reserved = await openStrict(t, 'https://store.example:22', { ca });
  await t.rejects(reserved.probe(signal), /the port must be 443 or above 1023/);
  t.equal(server.requests.length, 0);
});

t.test('a name is looked up for each connection', async (t) => {
  const server = await startStore(t, { tls });
  let address = '127.0.0.1';
  const resolve = async () => [address];
  const endpoint = server.url.replace('127.0.0.1', 'store.example');
  const bucket = await openBucket(t, { url: endpoint }, {}, { resolve, ca });
  await bucket.write(objectOf('one\n'), writing());
  await server.goAway();
  await server.comeBack();
  address = '10.0.0.5';
  await t.rejects(bucket.write(objectOf('two\n', { revision: 2 }), writing()), /not a public address/);
});

t.test('neither bucket nor region leads to another host', async (t) => {
  const server = await startStore(t, { tls });
  const endpoint = server.url.replace('127.0.0.1', 'store.example');
  const hosts: string[] = [];
  const resolve = async (host: string) => {
    hosts.push(host);
    return ['127.0.0.1'];
  };
  const buckets = [
    'evil.example',
    '127.0.0.1',
    'a_b',
    'xs3',
    'abc-s3alias',
    'x'.repeat(222),
    's3-accelerate',
  ];
  const regions = ['aws-global', 'fips-us-east-1', 'us-iso-east-1', 'cn-north-1', 'localhost', '-', 'a--b'];
  for (const bucket of buckets) {
    for (const region of regions) {
      const opened = await openBucket(t, { url: endpoint }, { bucket, region }, { resolve, ca });
      await t.rejects(opened.probe(signal), { name: 'DestinationError' });
    }
  }
  t.strictSame([...new Set(hosts)], ['store.example']);
  const outpost = 'accessp-o0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3';
  for (const bucket of [outpost, 'a--use1-az1--x-s3', 'a--use1-az1--xa-s3', 'abc.mrap'])
    await t.rejects(openS3(contextOf({ ...OWNER, bucket })), { message: /not one of general purpose/ });
});

t.test('a redirect is not followed', async (t) => {
  const trap = await startStore(t);
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  for (const status of [301, 302, 303, 307, 308]) {
    for (const location of [`${trap.url}/attestations/x`, 'http://169.254.169.254/latest/meta-data/']) {
      server.fail(() => ({
        kind: 'answer',
        with: (response) =>
          response.writeHead(status, { location }).end('<Error><Code>Redirect</Code></Error>'),
      }));
      await t.rejects(bucket.write(objectOf('one\n'), writing()), { name: 'DestinationError' });
      await t.rejects(bucket.probe(signal), { name: 'DestinationError' });
    }
  }
  t.equal(trap.requests.length, 0);
});

function endless(response: ServerResponse, start: string, piece: string): void {
  // Writing a body to the answer to HEAD never fills anything.
  if (response.req.method === 'HEAD') return void response.end();
  response.write(start);
  const chunk = piece.repeat(Math.ceil(65_536 / piece.length));
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', more);
  more();
}

const HOSTILE: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'an endless body': (response) => endless(response.writeHead(400), '<Error><Code>', 'a'),
  'an endless body of success': (response) => endless(response.writeHead(200, { etag: '"a"' }), '', 'a'),
  'endless elements': (response) => endless(response.writeHead(403), '<Error>', '<a>'),
  'endless headers': (response) => {
    response.socket?.write(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`);
  },
  'no HTTP': (response) => void response.socket?.end('SSH-2.0-OpenSSH_9.2p1\r\n'),
  'deep elements': (response) => void response.writeHead(400).end('<a>'.repeat(60_000)),
  'an XML bomb': (response) => {
    const entities = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(
      (name, index, names) => `<!ENTITY ${name} "${`&${names[index - 1] ?? 'x'};`.repeat(10)}">`,
    );
    const document = `<!DOCTYPE x [${entities.join('')}]><Error><Code>&h;</Code><Message>&h;</Message></Error>`;
    response.writeHead(400, { 'content-type': 'application/xml' }).end(document);
  },
  'an external entity': (response) => {
    const document =
      '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><Error><Code>&e;</Code></Error>';
    response.writeHead(400).end(document);
  },
  'invalid XML': (response) => void response.writeHead(500).end('<Error><Code>x</Error'),
  'a prototype': (response) =>
    void response.writeHead(400).end('<Error><__proto__><status>200</status></__proto__></Error>'),
  'an error of elements': (response) =>
    void response.writeHead(400).end('<Error><Code><a/></Code><Message><b>c</b></Message></Error>'),
  'lines and controls': (response) =>
    void response
      .writeHead(400)
      .end(`<Error><Code>Odd</Code><Message>a\n\u001b[31mb&#7;${'c'.repeat(900)}</Message></Error>`),
  'an odd status': (response) => void response.writeHead(599).end(),
  'no etag': (response) => void response.writeHead(200).end(),
};

t.test('a hostile answer is one short line', async (t) => {
  const server = await startStore(t);
  for (const [name, answer] of Object.entries(HOSTILE)) {
    for (const operation of ['HeadObject', 'PutObject', 'GetObject']) {
      const bucket = await openBucket(t, server);
      server.fail((request) =>
        request.operation === operation ? { kind: 'answer', with: answer } : undefined,
      );
      const error = await bucket.probe(signal).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      // What succeeds says nothing of an answer without a body.
      if (error === undefined) continue;
      t.match(error, { name: 'DestinationError', message: /^[^\n]{10,700}$/ }, `${name} to ${operation}`);
      t.notMatch((error as Error).message, /\p{C}/u);
      t.notMatch((error as Error).message, OWNER.secretAccessKey);
      await bucket.close();
    }
  }
});

t.test('a HEAD response without a revision is of an older object', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  for (const revision of ['', '0', '-1', '1e9', '99999999999999999999', 'NaN', '٣']) {
    server.fail(({ operation }) =>
      operation === 'HeadObject'
        ? {
            kind: 'answer',
            with: (response) =>
              response
                .writeHead(200, { etag: '"a"', 'x-amz-meta-revision': encodeURIComponent(revision) })
                .end(),
          }
        : undefined,
    );
    await t.rejects(bucket.write(objectOf('one\n'), writing()), /another writer keeps changing/);
  }
});

t.test("the operator's environment does not reach an endpoint", async (t) => {
  const trap = await startStore(t);
  const server = await startStore(t);
  const environment = {
    AWS_ENDPOINT_URL: trap.url,
    AWS_ENDPOINT_URL_S3: trap.url,
    AWS_REGION: 'eu-west-3',
    AWS_ACCESS_KEY_ID: 'AKIAOPERATOR',
    AWS_SECRET_ACCESS_KEY: 'operator',
    AWS_SESSION_TOKEN: 'operator-token',
    AWS_PROFILE: 'operator',
    AWS_USE_FIPS_ENDPOINT: 'true',
    AWS_USE_DUALSTACK_ENDPOINT: 'true',
    AWS_DEFAULTS_MODE: 'mobile',
    AWS_MAX_ATTEMPTS: '9',
    AWS_SDK_UA_APP_ID: 'operator-app',
    AWS_EXECUTION_ENV: 'operator-env',
    AWS_REQUEST_CHECKSUM_CALCULATION: 'WHEN_SUPPORTED',
    AWS_AUTH_SCHEME_PREFERENCE: 'sigv4a',
    HTTPS_PROXY: trap.url,
    HTTP_PROXY: trap.url,
  };
  Object.assign(process.env, environment);
  t.teardown(() => {
    for (const name of Object.keys(environment)) delete process.env[name];
  });
  const bucket = await openBucket(t, server);
  await bucket.probe(signal);
  await bucket.write(objectOf('one\n'), writing());
  t.equal(trap.requests.length, 0);
  t.notMatch(JSON.stringify(server.requests), /operator/i);
  for (const { accessKeyId } of server.requests) t.equal(accessKeyId, OWNER.accessKeyId);
});
