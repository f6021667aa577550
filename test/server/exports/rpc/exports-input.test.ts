import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import '../../../support/foreign/git.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { SECRET, setExportScene } from './exporting.js';

const scene = await setExportScene(t, {
  env: {
    ALLOW_INSECURE_DESTINATIONS: 'false',
    ALLOW_AMBIENT_CREDENTIALS: 'listed-bucket',
    PATH: process.env.PATH ?? '',
  },
});
const { app, store, destination, refusal } = scene;
const port = new URL(store.url).port;
const SAS = 'sv=2024-11-04&sr=c&sp=racw&se=2099-01-01T00:00:00Z&sig=c2VjcmV0LXNpZ25hdHVyZQ%3D%3D';
const TOKEN = 'token-of-a-test-Zq99';
app.recorder.secrets.add(TOKEN).add('c2VjcmV0LXNpZ25hdHVyZQ');

const s3 = { kind: 's3', bucket: 'a-bucket', access_key_id: 'AKIA1', secret_access_key: SECRET };
const azure = { kind: 'azure_blob', container: 'a-container', sas_token: SAS };
const git = { kind: 'git_repo', token: TOKEN };

t.test('a destination has the members of its kind, in their form', async (t) => {
  const owner = await newKey(app);
  const cases: [JsonObject, ...string[]][] = [
    [{}, '/destination'],
    [{ destination: {} }, '/destination/kind'],
    [{ destination: { kind: 'ftp' } }, '/destination/kind'],
    [{ destination: { kind: 's3' } }, '/destination/bucket'],
    [{ destination: { kind: 'gcs' } }, '/destination/bucket'],
    [{ destination: { kind: 'azure_blob' } }, '/destination/account_url', '/destination/container'],
    [{ destination: { kind: 'git_repo' } }, '/destination/url'],
    [{ destination: { ...s3, container: 'a-container' } }, '/destination/container'],
    [
      { destination: { ...s3, sas_token: SAS, token: TOKEN } },
      '/destination/sas_token',
      '/destination/token',
    ],
    [
      { destination: { kind: 'gcs', bucket: 'a-bucket', role_arn: 'arn:aws:iam::123456789012:role/a' } },
      '/destination/role_arn',
    ],
    [
      { destination: { ...git, url: 'https://example.com/x.git', bucket: 'a-bucket' } },
      '/destination/bucket',
    ],
    [{ destination: { ...s3, bucket: 'A-Bucket' } }, '/destination/bucket'],
    [{ destination: { ...s3, bucket: 7 } }, '/destination/bucket'],
    [{ destination: { ...s3, prefix: '../up' } }, '/destination/prefix'],
    [{ destination: { ...s3, prefix: '/absolute' } }, '/destination/prefix'],
    [{ destination: { ...s3, prefix: 'x'.repeat(513) } }, '/destination/prefix'],
    [{ destination: { ...s3, role_arn: 'arn:aws:iam::1:user/a' } }, '/destination/role_arn'],
    [{ destination: { ...s3, secret_access_key: `${SECRET}\n` } }, '/destination/secret_access_key'],
    [{ destination: { ...s3, region: 'Ohio' } }, '/destination/region'],
    [{ destination: { ...git, url: 'https://example.com/x.git', branch: '-force' } }, '/destination/branch'],
    [
      { destination: { ...git, url: 'https://example.com/x.git', host_key: 'nonsense' } },
      '/destination/host_key',
    ],
    [{ destination: { ...s3, unknown: 'x' } }, '/destination/unknown'],
    [{ destination: s3, start: 'tomorrow' }, '/start'],
    [{ destination: s3, compression: 'zip' }, '/compression'],
    [{ destination: s3, filter: { schema: 'x'.repeat(257) } }, '/filter/schema'],
    [{ destination: s3, filter: { schema: 'purls' } }, '/filter/schema'],
    [{ destination: s3, status: 'active' }, '/status'],
  ];
  for (const [body, ...paths] of cases) {
    const name = JSON.stringify(body).slice(0, 100);
    const { status, code, details } = await refusal(owner, body);
    t.same({ status, code }, { status: 400, code: 'request.invalid' }, name);
    const errors = (details.errors ?? []) as { path: string }[];
    t.same(errors.map(({ path }) => path).sort(), paths.sort(), name);
  }
});

t.test(
  'a destination that may not be called is rejected with the reason, and nothing is stored',
  async (t) => {
    const owner = await newKey(app);
    const cases: [JsonObject, RegExp][] = [
      [{ ...s3, endpoint: 'http://93.184.216.34' }, /https/],
      [{ ...s3, endpoint: `https://127.0.0.1:${port}` }, /public/],
      [{ ...s3, endpoint: 'https://10.0.0.1' }, /public/],
      [{ ...s3, endpoint: 'https://169.254.169.254' }, /public/],
      [{ ...s3, endpoint: 'https://[::1]:9000' }, /public/],
      [{ ...s3, endpoint: 'https://2130706433:9000' }, /public/],
      [{ ...s3, endpoint: 'https://localhost:9000' }, /public/],
      [{ ...s3, endpoint: 'https://store.localhost:9000' }, /public/],
      [{ ...s3, endpoint: 'https://user:password@93.184.216.34' }, /credentials/],
      [{ ...s3, endpoint: 'https://93.184.216.34:22' }, /port/],
      [{ ...s3, endpoint: 'nonsense' }, /https url/],
      [{ ...azure, account_url: 'http://93.184.216.34' }, /https/],
      [{ ...azure, account_url: `https://127.0.0.1:${port}/account` }, /public|account_url/],
      [{ ...azure, account_url: 'https://localhost/account' }, /public|account_url/],
      [
        { ...azure, account_url: 'https://user:password@example.blob.core.windows.net' },
        /account_url|credentials/,
      ],
      [{ ...git, url: 'http://93.184.216.34/x.git' }, /https:\/\/ or ssh/],
      [{ ...git, url: `https://127.0.0.1:${port}/x.git` }, /public/],
      [{ ...git, url: 'https://localhost/x.git' }, /public/],
      [{ ...git, url: 'https://0x7f.1/x.git' }, /public/],
      [{ ...git, url: `https://x:${TOKEN}@93.184.216.34/x.git` }, /credentials/],
      [{ ...git, url: 'file:///etc/passwd' }, /https:\/\/ or ssh/],
      [{ kind: 's3', bucket: 'another-bucket' }, /needs credentials/],
      [{ kind: 's3', bucket: 'a-bucket', access_key_id: 'AKIA1' }, /secret_access_key/],
      [{ kind: 'gcs', bucket: 'another-bucket' }, /service_account/],
      [{ kind: 'gcs', bucket: 'a-bucket', service_account: 'p@x.iam.gserviceaccount.com' }, /must contain/],
      [
        {
          kind: 'azure_blob',
          container: 'a-container',
          account_url: 'https://example.blob.core.windows.net',
        },
        /sas_token/,
      ],
    ];
    for (const [wanted, why] of cases) {
      const { status, code, message } = await refusal(owner, { destination: wanted });
      const name = `${wanted.kind} ${wanted.endpoint ?? wanted.account_url ?? wanted.url ?? wanted.bucket}`;
      t.match(
        { status, code, message },
        { status: 422, code: 'export.invalid_destination', message: why },
        name,
      );
      t.ok(message?.length <= 1_000 && !message.includes('\n'), message);
    }
    t.same(store.requests, [], 'nothing was called');
    t.same((await app.rest('/v1/exports', { apiKey: owner.key })).json.data, []);
    t.same((await app.pool`SELECT FROM export`).length, 0);
    t.match(destination(), { endpoint: /^http:/ });
  },
);

t.test('nothing secret was logged, or answered with an error', (t) => {
  assertNoLeaks(t, app.recorder);
  t.end();
});
