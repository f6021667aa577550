/** Usage as the admin API answers it, of a project or a key. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { UsageService, UsageWindow } from '../../../gen/attestation/admin/v1/usage_pb.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { submit } from '../rpc/submitting.js';

const app = await startApp(t);
const admin = adminOf(app);
const { getUsage } = UsageService.method;

t.test('usage is that of the requested project or key, and of no other', async (t) => {
  const one = await newKey(app);
  const sibling = await newKey(app, { projectId: one.projectId });
  const stranger = await newKey(app);
  for (let i = 0; i < 3; i++) await submit(app, one);
  for (let i = 0; i < 2; i++) await submit(app, sibling);
  for (let i = 0; i < 4; i++) await submit(app, stranger);
  const usage = async (input: Record<string, unknown>) => {
    const answers = await Promise.all(
      admin.surfaces.map(({ call }) => call(getUsage as DescMethodUnary, input, admin.token)),
    );
    for (const { response } of answers) t.same(response, answers[0]?.response);
    return answers[0]?.response as JsonObject;
  };
  t.match(await usage({ projectId: one.projectId }), { submissions: '5', submissionsLast24h: '5' });
  t.match(await usage({ apiKeyId: one.id }), { submissions: '3', submissionsLast24h: '3' });
  t.match(await usage({ projectId: stranger.projectId }), { submissions: '4' });
  const start = /T\d\d:00:00Z$/;
  t.match(await usage({ apiKeyId: one.id, window: UsageWindow.HOUR }), { data: [{ start }] });
  const midnight = Math.floor(Date.now() / 86_400_000) * 86_400_000;
  const before = { apiKeyId: one.id, end: timestampFromMs(midnight - 86_400_000) };
  t.match(await usage(before), { submissionsLast24h: '3' });
  t.notOk('submissions' in (await usage(before)), 'nothing until the day before yesterday');
  const since = { apiKeyId: one.id, start: timestampFromMs(midnight - 3_600_000) };
  t.match(await usage(since), { submissions: '3' });
  for (const input of [{ projectId: 'prj_none' }, { apiKeyId: 'key_none' }]) {
    t.match((await admin.call(getUsage, input)).code, /^(project|api_key)\.not_found$/);
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
