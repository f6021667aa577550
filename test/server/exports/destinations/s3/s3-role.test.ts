import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t, { type Test } from 'tap';
import { openS3 } from '../../../../../src/server/exports/destinations/s3/s3.js';
import {
  BUCKET,
  contextOf,
  EXPORT_ID,
  OWNER,
  objectOf,
  PROJECT_ID,
  startStore,
  writing,
} from '../../../../support/exports/s3/fixture.js';
import type { AccessKeys } from '../../../../support/exports/s3/keys.js';
import { type RoleTrust, startStsServer } from '../../../../support/exports/s3/sts-server.js';

const OPERATOR = { accessKeyId: 'AKIAOPERATOR', secretAccessKey: 'operator+secret/key' };
const ROLE = 'arn:aws:iam::123456789012:role/attestations';
const CARELESS = 'arn:aws:iam::123456789012:role/careless';
const FOREIGN = 'arn:aws:iam::123456789012:role/foreign';
/** Roles that trust every project of a service, or many, by a pattern. */
const WILDCARDS = new Map(
  ['*', 'prj_*', `${PROJECT_ID.slice(0, 10)}*`].map((pattern, n) => [
    `arn:aws:iam::123456789012:role/pattern-${n}`,
    pattern,
  ]),
);
const { signal } = new AbortController();

// The SDK finds the operator's settings here.
for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
Object.assign(process.env, {
  AWS_ACCESS_KEY_ID: OPERATOR.accessKeyId,
  AWS_SECRET_ACCESS_KEY: OPERATOR.secretAccessKey,
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
});

/** A store and an STS in the place of AWS: only sessions of the roles may use the bucket. */
async function startAws(t: Test, sessionSeconds?: number) {
  const keys: AccessKeys = new Map([[OPERATOR.accessKeyId, OPERATOR]]);
  const principals = [OPERATOR.accessKeyId];
  const roles = new Map<string, RoleTrust>([
    [ROLE, { principals, externalId: PROJECT_ID }],
    [CARELESS, { principals, externalId: undefined }],
    [FOREIGN, { principals, externalId: 'prj_of_another' }],
    ...[...WILDCARDS].map(([role, externalId]) => [role, { principals, externalId }] as const),
  ]);
  const sts = await startStsServer({ keys, roles, ...(sessionSeconds && { sessionSeconds }) });
  t.teardown(sts.close);
  const store = await startStore(t, { keys });
  process.env.AWS_ENDPOINT_URL_STS = sts.url;
  process.env.AWS_ENDPOINT_URL_S3 = store.url;
  return {
    sts,
    store,
    open: async (...args: Parameters<typeof contextOf>) => {
      const bucket = await openS3(contextOf(...args));
      t.teardown(() => bucket.close());
      return bucket;
    },
  };
}

t.test("a role is assumed with the project's id, for the bucket's requests only", async (t) => {
  const { sts, store, open } = await startAws(t);
  const bucket = await open({ roleArn: ROLE });
  t.strictSame(await bucket.write(objectOf('one\n'), writing()), { outcome: 'written' });
  t.strictSame(await bucket.write(objectOf('two\n', { revision: 2 }), writing()), { outcome: 'written' });
  t.strictSame(sts.calls, [
    {
      accessKeyId: OPERATOR.accessKeyId,
      roleArn: ROLE,
      sessionName: EXPORT_ID,
      externalId: PROJECT_ID,
      outcome: 'assumed',
    },
  ]);
  t.equal(store.requests.length, 4);
  for (const { accessKeyId } of store.requests) t.match(accessKeyId, /^ASIA/);
});

t.test('a role that others could have us assume is rejected by the probe', async (t) => {
  const { sts, store, open } = await startAws(t);
  await (await open({ roleArn: ROLE })).probe(signal);
  const another = sts.calls[1]?.externalId;
  t.strictSame(
    sts.calls.map(({ externalId, outcome }) => [externalId, outcome]),
    [
      [undefined, 'refused'],
      [another, 'refused'],
      [PROJECT_ID, 'assumed'],
    ],
  );
  t.match(another, /^prj_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.not(another, PROJECT_ID);
  store.requests.length = 0;
  await t.rejects((await open({ roleArn: CARELESS })).probe(signal), {
    name: 'DestinationError',
    message:
      /^arn:.*careless can be assumed without this project's external id, .*"sts:ExternalId": "prj_01KE8G9Q2R4T6V8X0Z1B3D5F7H".* trust policy$/,
  });
  t.equal(store.requests.length, 0);
});

t.test('a role that trusts every project of the service is rejected by the probe', async (t) => {
  const { store, open } = await startAws(t);
  for (const roleArn of WILDCARDS.keys())
    await t.rejects((await open({ roleArn })).probe(signal), {
      message: /can be assumed without this project's external id/,
    });
  t.equal(store.requests.length, 0);
});

t.test('a role of another project is not assumed', async (t) => {
  const { store, open } = await startAws(t);
  const bucket = await open({ roleArn: FOREIGN });
  const message =
    /foreign cannot be assumed; .* external id prj_01KE8G9Q2R4T6V8X0Z1B3D5F7H \(User: AKIAOPERATOR/;
  await t.rejects(bucket.probe(signal), { name: 'DestinationError', message });
  await t.rejects(bucket.write(objectOf('one\n'), writing()), { name: 'DestinationError', message });
  t.equal(store.requests.length, 0);
});

t.test('a session that ended before its time is renewed', async (t) => {
  const { sts, store, open } = await startAws(t);
  const bucket = await open({ roleArn: ROLE });
  for (const revision of [1, 2, 3]) {
    const object = objectOf(`${revision}\n`, { revision });
    t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
    t.equal(sts.calls.length, revision);
    for (const key of store.keys.values()) if (key.sessionToken !== undefined) key.expiresAt = 0;
  }
});

t.test('a session is renewed a while before its end', async (t) => {
  const { sts, store, open } = await startAws(t, 600);
  const bucket = await open({ roleArn: ROLE });
  t.strictSame(await bucket.write(objectOf('one\n'), writing()), { outcome: 'written' });
  t.equal(sts.calls.length, store.requests.length);
});

t.test('the signal ends a write that waits for its session', async (t) => {
  const { store, open } = await startAws(t);
  const controller = new AbortController();
  const reason = new Error('the lease is lost');
  const server = createServer(() => controller.abort(reason));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.env.AWS_ENDPOINT_URL_STS = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const bucket = await open({ roleArn: ROLE });
  await t.rejects(bucket.write(objectOf('one\n'), writing(controller.signal)), reason);
  await t.rejects(bucket.probe(controller.signal), reason);
  await bucket.close();
  await new Promise((resolve) => server.close(resolve));
  t.equal(store.requests.length, 0);
});

t.test("the operator's own credentials are for listed buckets only", async (t) => {
  const { store, sts, open } = await startAws(t);
  await t.rejects(openS3(contextOf({}, { ambientCredentials: ['another'] })), {
    name: 'DestinationError',
    message: /^the bucket needs credentials; set role_arn, or access_key_id and secret_access_key$/,
  });
  t.equal(store.requests.length, 0);
  const bucket = await open({}, { ambientCredentials: ['another', BUCKET] });
  await bucket.probe(signal);
  t.equal(sts.calls.length, 0);
  for (const { accessKeyId } of store.requests) t.equal(accessKeyId, OPERATOR.accessKeyId);
});

t.test("an owner's keys are used beside everything else", async (t) => {
  const { store, sts, open } = await startAws(t);
  store.keys.set(OWNER.accessKeyId, OWNER);
  const bucket = await open({ ...OWNER, roleArn: ROLE }, { ambientCredentials: [BUCKET] });
  await bucket.probe(signal);
  t.equal(sts.calls.length, 0);
  for (const { accessKeyId } of store.requests) t.equal(accessKeyId, OWNER.accessKeyId);
});

t.test('settings that contradict each other are rejected', async (t) => {
  const { accessKeyId, secretAccessKey } = OWNER;
  const endpoint = 'https://store.example';
  for (const [settings, message] of [
    [{ accessKeyId }, /need each other/],
    [{ secretAccessKey, roleArn: ROLE }, /need each other/],
    [{ endpoint }, /an endpoint needs access_key_id and secret_access_key/],
    [{ endpoint, roleArn: ROLE }, /an endpoint needs/],
    [{ ...OWNER, endpoint: 'store.example' }, /must be an https url/],
    [{ ...OWNER, endpoint: 'file:///etc/passwd' }, /must be an https url/],
    [{ ...OWNER, endpoint: 'https://a:b@store.example' }, /without credentials/],
    [{ ...OWNER, endpoint: 'https://store.example/?a=b' }, /query/],
  ] as const) {
    const context = contextOf(settings, { ambientCredentials: [BUCKET] });
    await t.rejects(openS3(context), { name: 'DestinationError', message });
  }
  const strict = contextOf({ ...OWNER, endpoint: 'http://store.example' }, { allowInsecure: false });
  await t.rejects(openS3(strict), /must be an https url/);
});

t.test('an operator without credentials is named', async (t) => {
  const { open } = await startAws(t);
  const bucket = await open({ roleArn: ROLE });
  const kept = process.env.AWS_ACCESS_KEY_ID;
  t.teardown(() => {
    process.env.AWS_ACCESS_KEY_ID = kept;
  });
  delete process.env.AWS_ACCESS_KEY_ID;
  await t.rejects(bucket.write(objectOf('one\n'), writing()), /has no AWS credentials.* ask its operator/);
});
