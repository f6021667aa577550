/** What requests about people and their roles may not say. */
import type { DescMethodUnary } from '@bufbuild/protobuf';
import t from 'tap';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { setPeopleScene } from './people-scene.js';

const { app, admin, newProject } = await setPeopleScene(t);
const { createInvitation, createRoleRule, listPeople, removeMember } = PersonService.method;

t.test('values out of bounds are rejected with a pointer', async (t) => {
  const projectId = await newProject();
  const rule = { projectId, role: Role.VIEWER };
  const twenty = Array.from({ length: 20 }, (_, i) => ({ ...rule, conditions: { groups: `g${i}` } }));
  const table: [method: DescMethodUnary, input: Record<string, unknown>, path: string][] = [
    [createInvitation, { projectId, role: Role.UNSPECIFIED }, '/role'],
    [createInvitation, { projectId, role: 9 as Role }, '/role'],
    [createInvitation, { ...rule, email: 'nobody' }, '/email'],
    [createInvitation, { ...rule, email: `${'x'.repeat(320)}@example.com` }, '/email'],
    [createInvitation, { ...rule, lifetime: { seconds: 59n } }, '/lifetime'],
    [createInvitation, { ...rule, lifetime: { seconds: 2_592_001n } }, '/lifetime'],
    [createRoleRule, { ...rule, conditions: {} }, '/conditions'],
    [createRoleRule, { ...rule, conditions: { groups: '*' } }, '/conditions'],
    [createRoleRule, { ...rule, conditions: { iss: 'x' } }, '/conditions/iss'],
    [createRoleRule, { ...rule, conditions: { email_verified: 'true' } }, '/conditions/email_verified'],
    [createRoleRule, { ...rule, conditions: { groups: '' } }, '/conditions/groups'],
    [listPeople, { projectId, limit: 201 }, '/limit'],
    [removeMember, { projectId }, '/person_id'],
  ];
  for (const [method, input, path] of table) {
    const outcome = await admin.call(method, input);
    t.equal(outcome.code, 'request.invalid', path);
    t.match(outcome.details, { errors: [{ path }] }, `${method.name} ${path}`);
  }
  await Promise.all(twenty.map((input) => admin.ask(createRoleRule, input)));
  const more = await admin.call(createRoleRule, { ...rule, conditions: { groups: 'more' } });
  t.match(more.details, { errors: [{ path: '/project_id', message: /^has 20 role rules/ }] });
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
