import t from 'tap';
import { openLogCache } from '../../../src/server/log/log-cache.js';
import { startApp } from '../../support/app.js';

t.test('a replaced database is reported, and cached rows stay', async (t) => {
  const app = await startApp(t);
  const logCache = await openLogCache(app.pool);
  const live = await logCache.activeLog.get(1);
  await app.pool`UPDATE log SET origin = 'live.elsewhere' WHERE id = ${live.id}`;
  await logCache.refresh();
  t.equal(
    logCache.unreadyReason(),
    `the database lacks the log ${live.origin}, which it had: it is another database`,
  );
  t.same(await logCache.activeLog.get(1), live);
  await app.pool`UPDATE log SET origin = ${live.origin} WHERE id = ${live.id}`;
  await logCache.refresh();
  t.equal(logCache.unreadyReason(), undefined);
});
