/** Invitations: each gives its role once, to the right person, in time. */
import t from 'tap';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { pruneInvitations } from '../../../../src/server/admin/store/invitations.js';
import { signInAs } from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { data, setPeopleScene } from './people-scene.js';

const { app, admin, newProject, account, invite, personOf } = await setPeopleScene(t);
const { deleteInvitation, listInvitations, listPeople } = PersonService.method;
const { getProject } = ProjectService.method;

t.test('an invitation gives its role once, to the first who has it', async (t) => {
  const projectId = await newProject();
  const { secret, made: invitation } = await invite(projectId, Role.MEMBER);
  t.equal(invitation.url, `${app.baseUrl}/dashboard/invitation#${secret}`);
  t.match(invitation, { id: /^inv_/, projectId, role: 'ROLE_MEMBER' });
  t.match(data(await admin.ask(listInvitations, { projectId })), [{ id: invitation.id }]);
  t.notMatch(JSON.stringify(await admin.ask(listInvitations, { projectId })), secret);
  const { outcome, browser } = await signInAs(app, account('ina'), secret);
  const memberships = [{ projectId, role: 'ROLE_MEMBER' }];
  t.match(outcome, { code: 'ok', response: { role: 'ROLE_MEMBER', memberships } });
  t.equal((await browser.call(getProject, { id: projectId })).code, 'ok');
  t.same(data(await admin.ask(listInvitations, { projectId })), []);
  const again = await signInAs(app, account('ivo'), secret);
  t.match(again.outcome, { status: 401, message: /accepted already, taken back, or has expired/ });
  t.match(data(await admin.ask(listPeople, { projectId })), [
    { person: { name: 'ina', email: 'ina@example.com' }, role: 'ROLE_MEMBER', invitedAs: 'ROLE_MEMBER' },
  ]);
  t.equal((await signInAs(app, 'ina')).outcome.code, 'ok', 'the role stays');
});

t.test('an invitation for an e-mail address wants it verified, and waits for the right person', async (t) => {
  const projectId = await newProject();
  const { secret } = await invite(projectId, Role.ADMIN, 'Right@Example.com');
  account('unverified', { email: 'right@example.com', email_verified: false });
  account('text', { email: 'right@example.com', email_verified: 'true' });
  account('without', { email: 'right@example.com', email_verified: undefined });
  account('wrong');
  for (const name of ['unverified', 'text', 'without', 'wrong']) {
    const { outcome } = await signInAs(app, name, secret);
    t.match(outcome, { status: 401, message: /for another e-mail address/ }, name);
  }
  t.same(await app.pool`SELECT FROM person WHERE name IN ('unverified', 'text', 'without', 'wrong')`, []);
  t.match((await signInAs(app, account('right'), secret)).outcome.response, { role: 'ROLE_ADMIN' });
});

t.test('an invitation ends when its time is over and when it is taken back', async (t) => {
  const projectId = await newProject();
  const [old, back] = [await invite(projectId, Role.VIEWER), await invite(projectId, Role.VIEWER)];
  await app.pool`UPDATE invitation SET expires_at = clock_timestamp() WHERE id = ${old.id}`;
  t.same(await admin.ask(deleteInvitation, { projectId, id: back.id }), { deleted: true });
  t.same(await admin.ask(deleteInvitation, { projectId, id: back.id }), {});
  for (const { secret } of [old, back]) {
    t.match((await signInAs(app, account('late'), secret)).outcome, { status: 401, message: /has expired/ });
  }
  await pruneInvitations(app.pool);
  t.same(await app.pool`SELECT FROM invitation WHERE project_id = ${projectId}`, []);
  for (const secret of ['x', 'x'.repeat(43)]) {
    const attempt = signInAs(app, 'late', secret);
    if (secret === 'x') await t.rejects(attempt, /auth.invalid_key/);
    else t.match((await attempt).outcome, { status: 401, message: /has expired/ });
  }
});

t.test('a second invitation takes nothing away', async (t) => {
  const projectId = await newProject();
  await personOf('twice', projectId, Role.ADMIN);
  const { outcome } = await signInAs(app, 'twice', (await invite(projectId, Role.VIEWER)).secret);
  t.match(outcome.response, { role: 'ROLE_ADMIN' });
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
