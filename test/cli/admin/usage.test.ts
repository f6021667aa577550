/** `attest usage`: of a project and of a key. */
import t from 'tap';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startAdmin } from './admin-commands.js';

const { app, attest, json, works } = await startAdmin(t);

t.test('usage is shown by day and by hour', async (t) => {
  const { id: project = '' } = await json('projects', 'create', 'usage');
  const { id = '', secret } = await json('keys', 'create', '--environment', 'live', '--project', project);
  for (let i = 0; i < 3; i++) await works(secret);
  t.match(await attest('usage', '--project', project), {
    code: 0,
    stdout:
      /^DAY \(UTC\) +SUBMISSIONS +READS\n(\d{4}-\d\d-\d\d +0 +\d+\n)+total +0 +\d+\nlast 24 h +0 +\d+\n$/,
  });
  t.match((await attest('usage', '--key', id, '--by', 'hour')).stdout, /^HOUR .*\n\d{4}-\d\d-\d\dT\d\d:00 /);
  const usage = await json<{ reads: number; data: unknown[] }>('usage', '--key', id);
  t.ok(usage.reads >= 3);
  t.match(usage.data, [{ start: /T00:00:00.000Z$/, submissions: 0 }]);
});

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder);
});
