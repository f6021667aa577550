/** This machine's clock and the database's part: no statement is dated by a clock that is wrong. */
import t from 'tap';
import { installClock, letPass } from '../support/breaking/database-clock.js';
import { newCreation, send } from '../support/calling/load.js';
import { makeInstallation, makeUnlimitedKey, type ServiceProcess } from '../support/servers/installation.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;

async function offset({ opsUrl }: ServiceProcess): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^attest_clock_offset_seconds (.*)$/m.exec(text)?.[1]);
}

t.test('submissions are rejected while the clocks are apart, and operators see it', async (t) => {
  const installation = await makeInstallation(t);
  await installClock(installation.databaseUrl);
  const pool = installation.openPool();
  const apiKey = await makeUnlimitedKey(pool);
  const api = await installation.startApi();
  const create = async () => (await send(api.baseUrl, apiKey, newCreation())).status;
  t.equal(await create(), 201);
  t.ok(Math.abs(await offset(api)) < 5);

  await letPass({ pool }, HOUR_MS);
  await until('creations are refused', async () => (await create()) === 503);
  const ready = await fetch(`${api.opsUrl}/readyz`);
  t.match(
    [ready.status, await ready.text()],
    [503, /this machine's clock is -3\d+\.\d s ahead of the database's/],
  );
  t.ok((await offset(api)) < -3_500);
  await until('the log says so', () =>
    api.lines.some(
      ({ level, msg }) => level === 'error' && /^no submission is accepted: this machine/.test(msg),
    ),
  );

  await letPass({ pool }, -HOUR_MS);
  await until('creations are taken', async () => (await create()) === 201);
});
