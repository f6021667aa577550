/** The URLs that name a store of objects, and what is wrong with others. */
import t from 'tap';
import { InvalidValue } from '../../src/config/invalid-value.js';
import { objectStorage, storage } from '../../src/config/object-storage.js';

t.test('buckets and containers, with prefix and options', async (t) => {
  t.same(objectStorage.parse('s3://logs'), { kind: 's3', bucket: 'logs', prefix: '', options: {} });
  t.same(objectStorage.parse('gs://my.logs/a/b-c_d.e/'), {
    kind: 'gs',
    bucket: 'my.logs',
    prefix: 'a/b-c_d.e',
    options: {},
  });
  const secret = { access_key_id: 'AKIA', secret_access_key: 'a+/b=' };
  const s3 = `s3://logs/p?${new URLSearchParams({ region: 'eu-central-1', endpoint: 'http://minio:9000', ...secret })}`;
  t.same(objectStorage.parse(s3).options, {
    region: 'eu-central-1',
    endpoint: 'http://minio:9000',
    ...secret,
  });
  const account = 'https://acme.blob.core.windows.net';
  t.same(
    objectStorage.parse(
      `az://logs?${new URLSearchParams({ account_url: account, sas_token: 'sp=rcw&sig=x' })}`,
    ),
    {
      kind: 'az',
      bucket: 'logs',
      prefix: '',
      options: { account_url: account, sas_token: 'sp=rcw&sig=x' },
    },
  );
});

t.test('a mistyped URL is no folder', async (t) => {
  for (const text of ['s3:/logs', 'S3:/logs', 'gs:/logs/a', 'ftp://logs/a', 'file:///logs'])
    t.throws(() => storage.parse(text), InvalidValue, text);
  for (const text of ['/logs', 'logs/a:b', 'c:logs']) t.match(storage.parse(text), { folder: /logs/ }, text);
});

t.test('every other text is an error without its secrets', async (t) => {
  const texts: [string, RegExp][] = [
    ['', /^$/],
    ['logs', /^$/],
    ['s3:/logs', /^$/],
    ['ftp://logs', /^$/],
    ['s3://', /names no bucket/],
    ['s3://Logs', /names no bucket/],
    ['s3://-logs', /names no bucket/],
    [`s3://${'l'.repeat(300)}`, /names no bucket/],
    ['s3://key:secret@logs', /a user, a port or a fragment/],
    ['s3://logs:9000/p', /a user, a port or a fragment/],
    ['s3://logs/p#secret', /a user, a port or a fragment/],
    ['s3://logs/a//b', /its prefix/],
    ['s3://logs/.hidden', /its prefix/],
    ['s3://logs/a%2fb', /its prefix/],
    [`s3://logs/${'a/'.repeat(300)}b`, /its prefix/],
    ['s3://logs?profile=secret', /has the options region, endpoint, access_key_id, secret_access_key/],
    ['gs://logs?region=secret', /has the options \(none\)/],
    ['s3://logs?region=a&region=secret', /region twice/],
    ['s3://logs?endpoint=secret', /endpoint is no URL/],
    ['az://logs', /lacks account_url/],
    ['az://logs?account_url=ftp://secret', /account_url is no URL/],
  ];
  for (const [text, expected] of texts) {
    const error = t.throws(() => objectStorage.parse(text), InvalidValue, text) as unknown as Error;
    t.match(error.message, expected, text);
    t.notMatch(error.message, /secret(?!_access_key)/, text);
  }
});
