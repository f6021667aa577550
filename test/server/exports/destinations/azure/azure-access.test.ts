import { readFile } from 'node:fs/promises';
import { BlobServiceClient, generateBlobSASQueryParameters } from '@azure/storage-blob';
import t from 'tap';
import { openAzureBlobWith } from '../../../../../src/server/exports/destinations/azure/open-azure-blob.js';
import { createTransport } from '../../../../../src/server/exports/destinations/azure/transport.js';
import { createHttpClient, HTTP_LIMITS } from '../../../../../src/server/exports/destinations/http-client.js';
import { guardedAgents } from '../../../../../src/server/net/destination.js';
import { makeCertificate } from '../../../../support/certificates/certificates.js';
import { makeAzureContext, setAzureScene } from '../../../../support/exports/azure-container.js';
import { AZURITE_ACCOUNT, startAzurite } from '../../../../support/exports/azurite.js';
import { control, textObject } from '../../../../support/exports/export-objects.js';
import { assertLine } from '../../../../support/exports/store-faults.js';

const azurite = await startAzurite(t);
const NAME = 'copies/a.jsonl';
const HOUR = 3_600_000;
const write = { object: textObject(NAME, 'one'), control: control() };

t.test('a signature that cannot serve is rejected before any request', async (t) => {
  const { container, proxy, open } = await setAzureScene(t, azurite);
  const past = new Date(Date.now() - 2 * HOUR);
  const cases = [
    { sasToken: azurite.sas(container, 'rcw', past), says: /^sas_token expired at 2\d{3}-.*; replace it/ },
    { sasToken: azurite.sas(container, 'r'), says: /it lacks w$/ },
    { sasToken: azurite.sas(container, 'cw'), says: /it lacks r$/ },
    { sasToken: '', says: /^give sas_token/ },
    { sasToken: 'sv=2020-01-01&sp=rcw', says: /is not a shared access signature/ },
    { sasToken: `${azurite.sas(container)}#x`, says: /is not a shared access signature/ },
  ];
  for (const { sasToken, says } of cases) {
    const error = await open({ destination: { sasToken } }).catch((thrown) => thrown);
    assertLine(t, error, { says, secrets: sasToken === '' ? [] : [sasToken] });
  }
  t.same(proxy.requests, []);
});

t.test('a signature with the question mark that portals put before it', async (t) => {
  const { sas, open } = await setAzureScene(t, azurite);
  const destination = await open({ destination: { sasToken: `?${sas}` } });
  t.same(await destination.write(write.object, write.control), { outcome: 'written' });
});

t.test('a signature that Azure rejects', async (t) => {
  const { container, sas, open } = await setAzureScene(t, azurite);
  const past = new Date(Date.now() - 2 * HOUR);
  const expired = { sasToken: azurite.sas(container, 'rcw', past), clock: () => past.getTime() };
  const altered = {
    sasToken: sas.replace(/sig=(.)/, (_, first) => `sig=${first === 'A' ? 'B' : 'A'}`),
    clock: Date.now,
  };
  for (const { sasToken, clock } of [expired, altered]) {
    const destination = await open({ destination: { sasToken } }, { clock });
    const error = await destination.probe(control().signal).catch((thrown) => thrown);
    assertLine(t, error, {
      says: /^Azure (?:rejects sas_token|forbids access: check sas_token).* \(403 Auth/,
      secrets: [sasToken],
    });
  }
});

t.test('a signature whose stored access policy permits to read only', async (t) => {
  const { container, open } = await setAzureScene(t, azurite);
  const accessPolicy = { permissions: 'r', startsOn: new Date(0), expiresOn: new Date(Date.now() + HOUR) };
  await azurite.owner
    .getContainerClient(container)
    .setAccessPolicy(undefined, [{ id: 'reader', accessPolicy }]);
  const terms = { containerName: container, identifier: 'reader' };
  const sasToken = generateBlobSASQueryParameters(terms, azurite.credential).toString();
  const destination = await open({ destination: { sasToken } });
  const error = await destination.probe(control().signal).catch((thrown) => thrown);
  assertLine(t, error, { says: /sas_token .*\(403 AuthorizationPermissionMismatch/, secrets: [sasToken] });
});

t.test('a container that does not exist', async (t) => {
  const { open } = await setAzureScene(t, azurite);
  const sasToken = azurite.sas('no-container');
  const destination = await open({ destination: { container: 'no-container', sasToken } });
  const error = await destination.probe(control().signal).catch((thrown) => thrown);
  assertLine(t, error, { says: /^the container no-container does not exist/, secrets: [sasToken] });
});

t.test('a blob under a foreign lease', async (t) => {
  const { container, sas, open } = await setAzureScene(t, azurite);
  const destination = await open();
  await destination.write(write.object, write.control);
  await azurite.owner.getContainerClient(container).getBlobClient(NAME).getBlobLeaseClient().acquireLease(-1);
  const error = await destination.write(textObject(NAME, 'two', 2), control()).catch((thrown) => thrown);
  assertLine(t, error, { says: /leased the blob; release the lease \(412 LeaseIdMissing/, secrets: [sas] });
});

t.test("leftovers of another writer's upload do not matter", async (t) => {
  const { container, open } = await setAzureScene(t, azurite);
  const blob = azurite.owner.getContainerClient(container).getBlockBlobClient(NAME);
  await blob.stageBlock(Buffer.from(`${'a'.repeat(32)}-000000`).toString('base64'), 'x', 1);
  const destination = await open();
  t.same(await destination.write(write.object, write.control), { outcome: 'written' });
  t.equal((await blob.downloadToBuffer()).toString(), 'one');
});

t.test('addresses that are not public are not connected to', async (t) => {
  const sasToken = azurite.sas('any');
  const cases = [
    { accountUrl: azurite.url, says: /the url must be https/ },
    { accountUrl: azurite.url.replace('http:', 'https:'), says: /127.0.0.1 is not a public address/ },
    { accountUrl: 'https://169.254.169.254/account', says: /169.254.169.254 is not a public address/ },
    { accountUrl: 'https://[::1]:10000/account', says: /is not a public address/ },
    { accountUrl: 'https://rebound.example.com', says: /rebound.example.com is not a public address/ },
  ];
  for (const { accountUrl, says } of cases) {
    const destination = await openAzureBlobWith(
      { guard: { resolve: async () => ['10.0.0.1'] } },
      makeAzureContext({ destination: { accountUrl, container: 'any', sasToken }, allowInsecure: false }),
    );
    const error = await destination.probe(control().signal).catch((thrown) => thrown);
    assertLine(t, error, { says, secrets: [sasToken] });
    await destination.close();
  }
});

t.test("the operator's credential is for listed accounts at Azure's hosts only", async (t) => {
  const credential = { getToken: async () => t.fail('the credential is used') as never };
  const open = (accountUrl: string, ambientCredentials: string[]) =>
    openAzureBlobWith(
      { credential },
      makeAzureContext({ destination: { accountUrl, container: 'any' }, ambientCredentials }),
    ).catch((thrown) => thrown);
  const account = 'example.blob.core.windows.net';
  assertLine(t, await open(`https://${account}`, ['other.blob.core.windows.net']), {
    says: /^give sas_token/,
    secrets: [],
  });
  for (const host of [
    '127.0.0.1',
    'blob.example.com',
    'example.blob.core.windows.net.example.com',
    'blob.core.windows.net',
  ]) {
    assertLine(t, await open(`https://${host}`, [host]), { says: /for accounts of Azure only/, secrets: [] });
  }
  assertLine(t, await open(`http://${account}`, [account]), {
    says: /for accounts of Azure only/,
    secrets: [],
  });
  assertLine(t, await open(`https://${account}?sig=x`, [account]), { says: /must not hold/, secrets: [] });
  assertLine(t, await open('example', []), { says: /is not a url/, secrets: [] });
});

t.test("the operator's credential opens a listed account", async (t) => {
  const host = `${AZURITE_ACCOUNT}.blob.core.windows.net`;
  const tls = await makeCertificate(t.testdir(), host);
  const ca = await readFile(tls.certFile, 'utf8');
  const secure = await startAzurite(t, tls);
  const guard = { ca, resolve: async () => ['127.0.0.1'] };
  const http = createHttpClient(guardedAgents({ allowInsecure: true, ...guard }), HTTP_LIMITS);
  t.teardown(() => http.close());
  const url = `https://${host}:${secure.port}`;
  const owner = new BlobServiceClient(url, secure.credential, { httpClient: createTransport(http) });
  await owner.createContainer('mine');
  const seconds = Math.floor(Date.now() / 1000);
  const claims = {
    iss: 'https://sts.windows.net/x/',
    aud: 'https://storage.azure.com',
    nbf: seconds - 60,
    iat: seconds - 60,
    exp: seconds + 3600,
  };
  const token = ['{"alg":"none","typ":"JWT"}', JSON.stringify(claims), '']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
  const open = (getToken: () => Promise<{ token: string; expiresOnTimestamp: number }>) =>
    openAzureBlobWith(
      { credential: { getToken }, guard },
      makeAzureContext({
        destination: { accountUrl: url, container: 'mine' },
        ambientCredentials: [host],
      }),
    );
  const destination = await open(async () => ({ token, expiresOnTimestamp: Date.now() + HOUR }));
  t.teardown(() => destination.close());
  await destination.probe(control().signal);
  t.ok(
    await owner
      .getContainerClient('mine')
      .getBlobClient('copies/exp_01KE8GAT4V6W8X0Y2Z4A6B8C0D/probe')
      .exists(),
  );
  const broken = await open(async () =>
    Promise.reject(new Error('AADSTS700016: the application secret-id was not found')),
  );
  t.teardown(() => broken.close());
  const error = await broken.probe(control().signal).catch((thrown) => thrown);
  assertLine(t, error, {
    says: /own Azure credentials do not work; ask its operator/,
    secrets: ['secret-id'],
  });
});
