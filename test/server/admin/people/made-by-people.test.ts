/** What people make: who made it, what happens to it without them, and their idempotency keys. */
import t from 'tap';
import { ApiKeyService } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { signInAs } from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { data, setPeopleScene } from './people-scene.js';

const { app, admin, newProject, invite, personOf } = await setPeopleScene(t);
const { removeMember } = PersonService.method;
const { createApiKey, listApiKeys } = ApiKeyService.method;

t.test('what a person makes is his: in the audit log, and when he is removed', async (t) => {
  const projectId = await newProject();
  const boss = await personOf('bea', projectId, Role.ADMIN);
  const maker = await personOf('max', projectId, Role.ADMIN);
  const make = async (name: string) => {
    const { response } = await maker.call(createApiKey, { projectId, environment: 1, name });
    app.recorder.secrets.add(String(response.secret));
    return response;
  };
  const [key, revoked] = [await make('a'), await make('b')];
  const createdBy = { id: maker.id, name: 'max', email: 'max@example.com' };
  t.match(key, { createdBy });
  await maker.call(ApiKeyService.method.revokeApiKey, { id: String(revoked.id) });
  const rotated = await boss.call(ApiKeyService.method.rotateApiKey, { id: String(key.id) });
  app.recorder.secrets.add(String(rotated.response.secret));
  t.match(rotated.response, { createdBy: { id: boss.id } }, 'who rotates has it');
  const conditions = { repository: 'acme/app' };
  const trust = { projectId, environment: 1, issuer: app.baseUrl, conditions };
  const { response: rule } = await maker.call(TrustRuleService.method.createTrustRule, trust);
  t.match(rule, { createdBy });
  const { response: list } = await boss.call(listApiKeys, { createdBy: maker.id });
  t.same(
    data(list).map(({ id }) => id),
    [revoked.id, key.id],
  );
  const { data: entries } = await admin.ask(AuditService.method.listAuditEntries, { projectId, limit: 2 });
  const actor = { kind: 'AUDIT_ACTOR_KIND_SESSION', id: /^ses_/, person: createdBy };
  t.match(entries, [
    { action: 'AUDIT_ACTION_TRUST_RULE_CREATED', actor },
    { actor: { person: { name: 'bea' } } },
  ]);
  const remove = async (revokeCredentials: boolean) =>
    (await boss.call(removeMember, { personId: maker.id, revokeCredentials })).response;
  const made = { apiKeyIds: [key.id], trustRuleIds: [rule.id] };
  t.same(await remove(false), { removed: true, ...made });
  t.equal((await app.rest('/v1/service/me', { apiKey: String(key.secret) })).status, 200);
  t.same(await remove(true), made, 'also later');
  t.equal((await app.rest('/v1/service/me', { apiKey: String(key.secret) })).status, 401);
  t.match((await boss.call(TrustRuleService.method.getTrustRule, { id: String(rule.id) })).response, {
    removedAt: /./,
  });
  t.same(await remove(true), {}, 'once');
});

t.test('an idempotency key of a person is one of the project', async (t) => {
  const [first, second] = [await newProject(), await newProject()];
  const person = await personOf('idem', first, Role.ADMIN);
  await signInAs(app, 'idem', (await invite(second, Role.ADMIN)).secret);
  const make = (projectId: string) =>
    person.call(
      createApiKey,
      { projectId, environment: 1, name: 'x' },
      { 'attest-project': projectId, 'idempotency-key': 'the-same-key' },
    );
  const made = [await make(first), await make(second)];
  t.same(
    made.map(({ code }) => code),
    ['ok', 'ok'],
  );
  for (const { response } of made) app.recorder.secrets.add(String(response.secret));
  const { response } = await person.call(listApiKeys, {}, { 'attest-project': second });
  t.ok(data(response).every(({ projectId }) => projectId === second));
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
