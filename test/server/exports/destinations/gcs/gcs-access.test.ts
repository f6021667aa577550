import t from 'tap';
import { openGcs } from '../../../../../src/server/exports/destinations/gcs/open-gcs.js';
import { isMethod, refuse } from '../../../../support/breaking/fault-proxy.js';
import { control, largeObject, textObject } from '../../../../support/exports/export-objects.js';
import { startGcsServer } from '../../../../support/exports/gcs/gcs-server.js';
import { ACCOUNT, BUCKET, makeGcsContext, setGcsScene } from '../../../../support/exports/gcs/open-bucket.js';
import { OPERATOR, SUBJECT_TOKEN } from '../../../../support/exports/gcs/tokens.js';
import { assertLine } from '../../../../support/exports/store-faults.js';

const NAME = 'copies/a.jsonl';
const MINUTE = 60_000;
const secrets = ['ya29.', SUBJECT_TOKEN, 'credentials.json'];

t.test('a token of the service account serves until it is about to expire', async (t) => {
  let now = Date.now();
  const { server, open } = await setGcsScene(t, () => now);
  const destination = await open({}, { clock: () => now });
  await destination.write(textObject(NAME, 'one', 1), control());
  now += 54 * MINUTE;
  await destination.write(textObject(NAME, 'two', 2), control());
  t.equal(server.tokens.issued.get(ACCOUNT), 1);
  now += 2 * MINUTE;
  await destination.write(textObject(NAME, 'three', 3), control());
  t.same(Object.fromEntries(server.tokens.issued), { [ACCOUNT]: 2, [OPERATOR]: 1 });
});

t.test('a token that is rejected is replaced with the next attempt', async (t) => {
  const { server, open } = await setGcsScene(t);
  const destination = await open();
  await destination.write(textObject(NAME, 'one', 1), control());
  server.tokens.expire(ACCOUNT);
  const error = await destination.write(textObject(NAME, 'two', 2), control()).catch((thrown) => thrown);
  assertLine(t, error, {
    says: /Google rejects the credentials \(401 authError: Invalid Credentials\)/,
    secrets,
  });
  t.same(await destination.write(textObject(NAME, 'two', 2), control()), { outcome: 'written' });
});

t.test('a service account that is not of the project is rejected before any request', async (t) => {
  const { server, proxy, open } = await setGcsScene(t);
  for (const serviceAccount of [
    'exports@customer.iam.gserviceaccount.com',
    ACCOUNT.replace('k@', 'm@'),
    '@01ke8g1a2b3c4d5e6f7g8h9j0k',
  ]) {
    const error = await open({ destination: { serviceAccount } }).catch((thrown) => thrown);
    assertLine(t, error, {
      says: /gcloud iam service-accounts create p-01ke8g1a2b3c4d5e6f7g8h9j0k$/,
      secrets,
    });
  }
  t.same(proxy.requests, []);
  t.equal(server.tokens.issued.size, 0);
});

t.test('an account that does not let this service impersonate it', async (t) => {
  const { open } = await setGcsScene(t);
  const serviceAccount = ACCOUNT.replace('p-', 'q-');
  const destination = await open({ destination: { serviceAccount } });
  const error = await destination.probe(control().signal).catch((thrown) => thrown);
  assertLine(t, error, {
    says: /roles\/iam.serviceAccountTokenCreator\) on q-01ke.*PERMISSION_DENIED/,
    secrets,
  });
});

t.test("the operator's own credentials are for listed buckets only", async (t) => {
  const { server, open } = await setGcsScene(t);
  const destination = { serviceAccount: '' };
  for (const ambientCredentials of [[], ['another-bucket', `${BUCKET}2`]]) {
    const error = await open({ destination, ambientCredentials }).catch((thrown) => thrown);
    assertLine(t, error, { says: /^give service_account/, secrets });
  }
  t.equal(server.tokens.issued.size, 0);
  server.bucket(BUCKET).grants.set(OPERATOR, new Set(['get', 'create', 'delete']));
  const opened = await open({ destination, ambientCredentials: [BUCKET] });
  await opened.probe(control().signal);
  t.same([...server.tokens.issued.keys()], [OPERATOR]);
});

t.test("errors do not show the operator's configuration", async (t) => {
  const { open } = await setGcsScene(t);
  const { GOOGLE_APPLICATION_CREDENTIALS: path = '' } = process.env;
  process.env.GOOGLE_APPLICATION_CREDENTIALS = `${path}.missing`;
  const missing = await open().catch((thrown) => thrown);
  assertLine(t, missing, { says: /^this service has no Google credentials; ask its operator$/, secrets });
});

t.test('the probe finds missing permissions of the account', async (t) => {
  const { server, open } = await setGcsScene(t);
  const bucket = server.bucket(BUCKET);
  const destination = await open();
  const probe = () => destination.probe(control().signal).catch((thrown) => thrown);
  for (const permissions of [[], ['get'], ['get', 'create']] as const) {
    bucket.grants.set(ACCOUNT, new Set(permissions));
    const says =
      /^grant p-01ke8g\S+ the role Storage Object User .* on the bucket example-attestations \(403 forbidden/;
    assertLine(t, await probe(), { says, secrets });
  }
  bucket.grants.set(ACCOUNT, new Set(['get', 'create', 'delete']));
  bucket.isRetained = true;
  assertLine(t, await probe(), { says: /must allow overwriting: remove its retention policy/, secrets });
  bucket.isRetained = false;
  t.equal(await probe(), undefined);
});

t.test('a bucket that does not exist', async (t) => {
  const { open } = await setGcsScene(t);
  const destination = await open({ destination: { bucket: 'no-such-bucket' } });
  const error = await destination.probe(control().signal).catch((thrown) => thrown);
  assertLine(t, error, { says: /^the bucket no-such-bucket does not exist/, secrets });
});

t.test('an upload goes to no other host', async (t) => {
  const { proxy, open } = await setGcsScene(t);
  const other = await startGcsServer(t);
  const destination = await open();
  void proxy.breakNext(isMethod('POST'), refuse(200, { location: `${other.url}/upload?upload_id=1` }));
  const error = await destination.write(textObject(NAME, 'one'), control()).catch((thrown) => thrown);
  assertLine(t, error, { says: /names another host/, secrets });
});

t.test('an object that is damaged on its way does not become visible', async (t) => {
  const { server, open } = await setGcsScene(t);
  const object = largeObject(NAME, 100_000);
  let readings = 0;
  const read = () => (readings++ === 0 ? object.read() : textObject(NAME, 'x'.repeat(100_000)).read());
  const error = await (await open()).write({ ...object, read }, control()).catch((thrown) => thrown);
  assertLine(t, error, { says: /^the data changed on its way/, secrets });
  t.equal(server.bucket(BUCKET).objects.size, 0);
});

t.test('an emulator that the operator names needs no credentials', async (t) => {
  const server = await startGcsServer(t);
  server.tokens.allowAnonymous();
  server.bucket(BUCKET).grants.set(OPERATOR, new Set(['get', 'create', 'delete']));
  process.env.STORAGE_EMULATOR_HOST = server.url;
  t.teardown(() => delete process.env.STORAGE_EMULATOR_HOST);
  const destination = await openGcs(makeGcsContext());
  t.teardown(() => destination.close());
  await destination.probe(control().signal);
  t.equal(server.tokens.issued.size, 0);
});
