import t from 'tap';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { startApp } from '../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { rpcName } from '../../support/calling/rpcs.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { openSender, sendHostileBodies, sendHostileMessages } from '../rpc/hostile/hostile-calls.js';

const app = await startApp(t);
const admin = adminOf(app);
const send = openSender(t, app);

for (const method of ADMIN_METHODS) {
  t.test(`${rpcName(method)} answers any request with a documented error or success`, async (t) => {
    t.same(await sendHostileMessages(send, method, admin.token), [], 'by gRPC');
    t.same(await sendHostileBodies(app, method, admin.token), [], 'by Connect');
    t.equal((await admin.call(ProjectService.method.listProjects, {})).code, 'ok', 'it goes on');
  });
}

t.test(
  'wrong tokens are answered slowly, however many there are, and the right one all the same',
  async (t) => {
    const { listProjects } = ProjectService.method;
    const wrong = Array.from({ length: 70 }, (_, i) =>
      admin.surfaces[i % 2]!.call(listProjects, {}, `no-such-admin-token-${i}`),
    );
    const right = await Promise.all(Array.from({ length: 20 }, () => admin.call(listProjects, {})));
    t.same(new Set(right.map(({ code }) => code)), new Set(['ok']));
    const codes = (await Promise.all(wrong)).map(({ code }) => code);
    t.same(new Set(codes), new Set(['auth.invalid_key', 'service.unavailable']));
    t.ok(codes.filter((code) => code === 'auth.invalid_key').length >= 50);
  },
);

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
