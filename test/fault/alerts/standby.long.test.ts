/** The synchronous standby of the database is away, and the alerts that this fires. */
import t from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { disproveFiring, IDLE, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';

const pair = await startStandbyPair(t);
const { natsUrl } = await testServers();
const installation = await makeInstallation(t, { servers: { databaseUrl: pair.url, natsUrl } });
const apiKey = await makeUnlimitedKey(installation.openPool());
const worker = await installation.startWorker();
const api = await installation.startApi();

const submit = () => send(api.baseUrl, apiKey, newCreation());
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...lines);

t.test('the standby is away, and back', async (t) => {
  await submit();
  const health = await scrapeOnce(/^attest_database_standby_away 0/m, ...IDLE);
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
  pair.takeStandbyAway();
  const waiting = submit();
  const during = await scrapeOnce(/^attest_database_standby_away 1/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestStandbyAway']), undefined);
  await pair.bringStandbyBack();
  await waiting;
  await scrapeOnce(/^attest_database_standby_away 0/m);
});
