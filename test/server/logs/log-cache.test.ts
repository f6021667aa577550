import t from 'tap';
import { openDirectory } from '../../../src/server/logs/log-cache.js';
import { startApp } from '../../support/app.js';

t.test('what was read of a database outlasts another one in its place', async (t) => {
  const app = await startApp(t);
  const directory = await openDirectory(app.pool);
  const live = await directory.getActiveLog(1);
  await app.pool`UPDATE log SET origin = 'live.elsewhere' WHERE id = ${live.id}`;
  await directory.refresh();
  t.equal(
    directory.findProblem(),
    `the database lacks the log ${live.origin}, which it had: it is another database`,
  );
  t.same(await directory.getActiveLog(1), live);
  await app.pool`UPDATE log SET origin = ${live.origin} WHERE id = ${live.id}`;
  await directory.refresh();
  t.equal(directory.findProblem(), undefined);
});
