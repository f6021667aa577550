/** API processes while no primary responds: reads come from the synchronous standby. */
import t from 'tap';
import { newCreation } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';
import { linkTo, untilAsked } from './primary-link.js';

t.test('an API process serves reads while there is no primary, and goes on with the next', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, url } = await linkTo(t, pair);
  const { natsUrl } = await testServers();
  const tsa = await startFaultTsa(t);
  const installation = await makeInstallation(t, {
    servers: { databaseUrl: url, natsUrl },
    env: { WITNESSES: JSON.stringify([tsa.setting('foreign')]), DATABASE_READ_URL: pair.standbyUrl },
  });
  const pool = installation.openPool();
  const [apiKey, otherKey] = [await makeUnlimitedKey(pool), await makeUnlimitedKey(pool)];
  const [api] = [await installation.startApi(), await installation.startWorker()];
  const call = async (
    method: string,
    path: string,
    { body, key = apiKey }: { body?: object; key?: string } = {},
  ) => {
    const answer = await fetch(api.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, text, headers: answer.headers };
  };
  const sha256 = newCreation().artifactSha256;
  const metadata = { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' };
  const create = () => call('POST', '/v1/attestations', { body: { artifact: { sha256 }, metadata } });
  const { id } = JSON.parse((await create()).text);
  await untilWitnessed(pool);
  const batch = JSON.parse((await call('GET', `/v1/attestations/${id}`)).text).batch_id;
  const readPaths = [
    `/v1/attestations/${id}`,
    `/v1/attestations/${id}/bundle`,
    `/v1/attestations/${id}/bundle.sigstore.json`,
    '/v1/attestations',
    `/v1/attestations?artifact_sha256=${sha256}`,
    '/v1/batches',
    ...(batch === undefined ? [] : [`/v1/batches/${batch}`]),
    '/v1/service/me',
    '/v1/service/trust_roots',
  ];
  const readyz = async () => {
    const answer = await fetch(`${api.opsUrl}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  };
  const before = await Promise.all(readPaths.map(async (path) => (await call('GET', path)).status));
  t.same(
    before,
    readPaths.map(() => 200),
  );
  const doctor = await runHere(['doctor'], { env: installation.env });
  t.match(doctor.stdout, /^ok +DATABASE_READ_URL +is a replica$/m);
  link.set('refuses');
  await until('reads are served again', async () => (await call('GET', readPaths[0] ?? '')).status === 200);
  // What is cached is valid for seconds.
  const endMs = Date.now() + 3_000;
  while (Date.now() < endMs)
    for (const path of readPaths) t.match(await call('GET', path), { status: 200 }, path);
  t.match(
    await call('GET', '/v1/attestations', { key: otherKey }),
    { status: 200 },
    'a key that is not cached',
  );
  t.match(await call('GET', '/v1/attestations', { key: `svc_live_${'x'.repeat(43)}` }), { status: 401 });
  t.match(await create(), { status: 503 });
  t.match(await readyz(), /^200 .*no primary of the database responds/s);
  const health = JSON.parse((await call('GET', '/v1/service/health')).text);
  t.match(health, { status: 'degraded', reason: /^no primary of the database responds/ });
  t.match(await (await fetch(`${api.opsUrl}/metrics`)).text(), /^attest_database_primary_away 1$/m);
  await pair.promoteStandby();
  link.set('passes');
  await until('creates are taken', async () => (await create()).status === 201);
  await until('it says so', async () => !/no primary/.test(await readyz()));
  const said = () => api.lines.filter(({ msg }) => /primary of the database/.test(msg));
  await until('its line arrives', async () => said().length > 1);
  t.same(
    said().map(({ level }) => level),
    ['error', 'info'],
  );
});

t.test('without a primary a process counts the reads of a key by itself', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, url } = await linkTo(t, pair);
  const { natsUrl } = await testServers();
  const installation = await makeInstallation(t, {
    servers: { databaseUrl: url, natsUrl },
    env: { DATABASE_READ_URL: pair.standbyUrl },
  });
  const pool = installation.openPool();
  const apiKey = await makeUnlimitedKey(pool);
  await pool`UPDATE api_key SET reads_per_second = 20`;
  const api = await installation.startApi();
  const read = async () =>
    (await fetch(`${api.baseUrl}/v1/attestations`, { headers: { authorization: `Bearer ${apiKey}` } }))
      .status;
  await untilAsked(pair.primary, 'attest primary');
  link.set('refuses');
  await until('reads are served', async () => (await read()) === 200);
  const statuses = await Promise.all(Array.from({ length: 100 }, read));
  t.ok(statuses.includes(429), `${statuses}`);
  t.ok(statuses.filter((status) => status === 200).length <= 60, 'in at most three seconds');
  await until('the next second has room', async () => (await read()) === 200);
});
