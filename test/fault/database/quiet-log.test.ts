/** While Postgres is away the log says so at growing intervals and names the work; nothing fills it up. */
import t from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { LogLine, ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';

const { installation, servers, apiKey } = await setScene(t);
const api = await installation.startApi();
const worker = await installation.startWorker();

const away = ({ lines }: ServiceProcess) =>
  lines.filter(({ msg }) => msg.includes('the database is unavailable'));

/** How many lines each piece of work has. */
function countByWork(lines: readonly LogLine[]): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const { work } of lines) counts.set(work, (counts.get(work) ?? 0) + 1);
  return counts;
}

t.test('an outage is few lines, of each piece of work and of all requests', async (t) => {
  const { proxy } = servers.postgres;
  proxy.setOpen(false);
  proxy.cut();
  let refused = 0;
  await until('it was said twice', async () => {
    const { status } = await send(api.baseUrl, apiKey, newCreation());
    if (status === 503) refused++;
    const counts = countByWork(away(worker));
    return refused >= 50 && (counts.get('looking for due jobs of logs') ?? 0) >= 2;
  });
  proxy.setOpen(true);
  await until('it is over', () => worker.lines.some(({ msg }) => msg === 'the database is available again'));
  for (const process of [worker, api]) {
    t.same(
      process.lines.filter(({ level }) => level === 'error'),
      [],
    );
    const lines = away(process);
    t.ok(lines.length > 0);
    for (const line of lines) t.match(line, { level: 'warn', work: String, reason: String });
  }
  for (const [work, count] of countByWork(away(worker))) t.ok(count <= 4, `${work}: ${count} lines`);
  t.ok(away(api).length <= 4, `${away(api).length} lines for ${refused} requests`);
});

t.test('both end cleanly', async () => {
  await worker.stop();
  await api.stop();
});
