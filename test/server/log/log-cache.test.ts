import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { openLogCache } from '../../../src/server/log/log-cache.js';
import { startApp } from '../../support/app.js';

const OWNER = { projectId: 'prj_1', environment: Environment.LIVE } as const;

t.test('a replaced database is reported, and cached rows stay', async (t) => {
  const app = await startApp(t);
  const logCache = await openLogCache(app.pool);
  const live = await logCache.activeLog.get(OWNER);
  await app.pool`UPDATE log SET origin = 'live.elsewhere' WHERE id = ${live.id}`;
  await logCache.refresh();
  t.equal(
    logCache.unreadyReason(),
    `the database lacks the log ${live.origin}, which it had: it is another database`,
  );
  t.same(await logCache.activeLog.get(OWNER), live);
  await app.pool`UPDATE log SET origin = ${live.origin} WHERE id = ${live.id}`;
  await logCache.refresh();
  t.equal(logCache.unreadyReason(), undefined);
});
