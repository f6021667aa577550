/** Sessions that people see and end: their own, those of their project, all. */
import t from 'tap';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { type Browser, signedIn } from '../../../support/calling/sessions.js';
import { signInAs } from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { data, setPeopleScene } from './people-scene.js';

const { app, newProject, account, personOf } = await setPeopleScene(t);
const { endSession, getSession, listSessions, revokeSessions } = SessionService.method;

t.test('people see and end their own sessions, admins those of the project, operators all', async (t) => {
  const [projectId, elsewhere] = [await newProject(), await newProject()];
  const boss = await personOf('sid', projectId, Role.ADMIN);
  const viewer = await personOf('vera', projectId, Role.VIEWER);
  const other = await personOf('otto', elsewhere, Role.ADMIN);
  const { browser: again } = await signInAs(app, 'vera');
  const link = await signedIn(app, { projectId, environment: 1 });
  const { browser: op } = await signInAs(app, account('pia', { groups: ['platform'] }));
  const idOf = async (browser: Browser) => String((await browser.call(getSession, {})).response.id);
  const ids = Object.fromEntries(
    await Promise.all(
      Object.entries({ boss, viewer, other, again, link, op }).map(async ([name, one]) => [
        name,
        await idOf(one),
      ]),
    ),
  ) as Record<string, string>;
  const seen = async (browser: Browser, input = {}) => {
    const { response } = await browser.call(listSessions, input);
    const listed = data(response).map(({ id }) => id);
    return Object.keys(ids).filter((name) => listed.includes(ids[name] as string));
  };
  t.same(await seen(viewer), ['viewer', 'again']);
  t.same(await seen(boss), ['boss', 'viewer', 'again', 'link']);
  t.same(await seen(link), ['boss', 'viewer', 'again', 'link']);
  t.same(await seen(op), ['boss', 'viewer', 'other', 'again', 'link', 'op']);
  t.same(await seen(op, { owner: { case: 'operator', value: true } }), ['op']);
  t.same(await seen(op, { owner: { case: 'projectId', value: elsewhere } }), ['other']);
  t.equal((await boss.call(listSessions, { owner: { case: 'operator', value: true } })).status, 403);
  const end = async (browser: Browser, name: string) =>
    (await browser.call(endSession, { id: ids[name] ?? '' })).response.ended === true;
  t.notOk(await end(viewer, 'boss'));
  t.notOk(await end(boss, 'other'));
  t.notOk(await end(boss, 'op'));
  t.ok(await end(viewer, 'again'));
  t.ok(await end(boss, 'viewer'));
  t.equal((await viewer.call(getSession, {})).status, 401);
  t.same((await boss.call(revokeSessions, {})).response, { sessions: 2 });
  t.equal((await boss.call(getSession, {})).status, 401);
  t.equal((await other.call(getSession, {})).code, 'ok');
  t.match(data((await op.call(listSessions, {})).response)[0], { person: { name: 'pia' }, isOwn: true });
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
