/** Sessions of the dashboard: how they end, and where they are listed and recorded. */
import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type ListSessionsRequestSchema,
  SessionService,
} from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { pruneSessions } from '../../../src/server/admin/store/sessions.js';
import { type Browser, newBrowser, signedIn } from '../../support/calling/sessions.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { setSessionScene } from './session-scene.js';

const { app, admin, byToken, byLink } = await setSessionScene(t);
const one = await newKey(app);
const { getSession, signOut, revokeSessions, listSessions, endSession } = SessionService.method;
const { updateApiKey } = ApiKeyService.method;

type OpenSession = JsonObject & { id: string; isOwn?: boolean };

async function openSessions(of: MessageInitShape<typeof ListSessionsRequestSchema>): Promise<OpenSession[]> {
  return ((await admin.ask(listSessions, of)).data ?? []) as OpenSession[];
}

async function idOf(browser: Browser): Promise<string> {
  return String((await browser.call(getSession, {})).response.id);
}

t.test('a session ends: by its time, without use, when it is revoked', async (t) => {
  const columns = ['expires_at = now()', "last_used_at = now() - interval '61 minutes'"];
  for (const column of columns) {
    const tenant = await signedIn(app, one);
    t.equal((await tenant.call(getSession, {})).code, 'ok');
    await app.pool`UPDATE session SET ${app.pool.unsafe(column)}`;
    t.equal((await tenant.call(getSession, {})).status, 401, column);
  }
  await pruneSessions(app.pool);
  t.equal((await app.pool`SELECT FROM session`).length, 0, 'and is deleted');
  const [tenant, operator] = [await signedIn(app, one), newBrowser(app)];
  await operator.signIn(byToken);
  const unused = await byLink(one.projectId);
  t.match(await admin.ask(revokeSessions, { projectId: one.projectId }), { sessions: 1, links: 1 });
  t.equal((await tenant.call(getSession, {})).status, 401);
  t.equal((await newBrowser(app).signIn(unused)).status, 401);
  t.equal((await operator.call(getSession, {})).code, 'ok', "the operator's is not the project's");
  t.match(await admin.ask(revokeSessions, {}), { sessions: 1 });
  t.equal((await operator.call(getSession, {})).status, 401);
});

t.test('sessions are listed by their owner, and ended one by one', async (t) => {
  const [mine, other, operator] = [await newKey(app), await newKey(app), newBrowser(app)];
  await operator.signIn(byToken);
  const [first, second] = [await signedIn(app, mine), await signedIn(app, mine)];
  await signedIn(app, other);
  const ofProject = { owner: { case: 'projectId' as const, value: mine.projectId } };
  const ofOperator = { owner: { case: 'operator' as const, value: true } };
  const [newest, oldest] = await openSessions(ofProject);
  t.match(newest, { projectId: mine.projectId, projectName: 'a test', linkId: /^lnk_/, lastUsedAt: /T/ });
  t.same([newest?.id, oldest?.id], [await idOf(second), await idOf(first)], 'the newest first');
  t.same((await openSessions(ofOperator)).at(0)?.id, await idOf(operator));
  t.ok((await openSessions({})).length > 3, 'all, without an owner');
  const own = (await operator.call(listSessions, ofOperator)).response.data as OpenSession[];
  t.same(
    own.filter(({ isOwn }) => isOwn).map(({ id }) => id),
    [await idOf(operator)],
    'which is its own',
  );
  const page = await admin.ask(listSessions, { ...ofProject, limit: 1 });
  const cursor = String(page.nextCursor);
  t.match(await admin.ask(listSessions, { ...ofProject, cursor }), { data: [{ id: oldest?.id }] });
  t.equal((await admin.call(listSessions, { ...ofOperator, cursor })).code, 'cursor.invalid');
  const unknown = { owner: { case: 'projectId' as const, value: 'prj_none' } };
  t.equal((await admin.call(listSessions, unknown)).code, 'project.not_found');

  const id = String(oldest?.id);
  t.same(await admin.ask(endSession, { id }), { ended: true });
  t.equal((await first.call(getSession, {})).status, 401, 'it has ended');
  t.equal((await second.call(getSession, {})).code, 'ok', 'the other has not');
  t.same(await admin.ask(endSession, { id }), {}, 'it ends once');
  t.match(await openSessions(ofProject), [{ id: newest?.id }]);
  const { data } = await admin.ask(AuditService.method.listAuditEntries, { resourceId: id });
  const revoked = { action: 'AUDIT_ACTION_SESSION_REVOKED', projectId: mine.projectId };
  t.match(data, [{ ...revoked, actor: { kind: 'AUDIT_ACTOR_KIND_ADMIN' } }, { action: /STARTED/ }]);
  await app.pool`UPDATE session SET last_used_at = now() - interval '61 minutes' WHERE project_id = ${mine.projectId}`;
  t.same(await openSessions(ofProject), [], 'one that has ended is not listed');
  t.same(await admin.ask(endSession, { id: String(newest?.id) }), {}, 'nor ended again');
});

t.test('the audit log has each sign-in and each change by a session', async (t) => {
  const key = await newKey(app);
  const tenant = await signedIn(app, key);
  const { response } = await tenant.call(getSession, {});
  await tenant.call(updateApiKey, { id: key.id, name: 'renamed' });
  await tenant.call(signOut, {});
  const { data } = await admin.ask(AuditService.method.listAuditEntries, { projectId: key.projectId });
  const actor = { kind: 'AUDIT_ACTOR_KIND_SESSION', id: response.id };
  t.match(data, [
    { action: 'AUDIT_ACTION_SESSION_ENDED', actor },
    { action: 'AUDIT_ACTION_API_KEY_CHANGED', actor, resourceId: key.id },
    { action: 'AUDIT_ACTION_SESSION_STARTED', actor, detail: { by: 'link' } },
    { action: 'AUDIT_ACTION_SIGN_IN_LINK_CREATED', actor: { kind: 'AUDIT_ACTOR_KIND_ADMIN' } },
  ]);
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
