/** Erasing a statement: by the operator only, in every process at once, and what is left of bundle and answers. */
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { SubmissionService } from '../../../../gen/attestation/admin/v1/submissions_pb.js';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { rest as restOf } from '../../../support/calling/rpc-clients.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertConsistent } from '../../../support/judging/consistent.js';
import { assertNoLeaks, CANARY } from '../../../support/judging/recorder.js';
import { dumpTables, findTraces } from '../../../support/judging/traces.js';
import { auditOf } from '../../rpc/auditing.js';
import { creation, NOTHING } from '../../rpc/samples.js';
import { digest, publicCreation, RESULT } from './public-samples.js';

const app = await startApp(t, { apis: 2 });
const admin = adminOf(app);
const owner = await newKey(app);
const { createAttestation, getAttestation, listAttestations, deleteAttestation } = AttestationService.method;
const { eraseStatement } = SubmissionService.method;
const everywhere = [...app.surfaces(), ...app.surfaces(app.baseUrls[1])];
const [rest] = everywhere;
if (rest === undefined) throw new Error('there is no REST surface');
const PATH = '/v1/attestations';

const getFrom = (baseUrl: string, path: string) => restOf(baseUrl, app.recorder, path, { apiKey: owner.key });
const get = (path: string) => getFrom(app.baseUrl, `${PATH}/${path}`);

async function make(message: object): Promise<string> {
  const { code, response } = await rest!.call(createAttestation, message as never, owner.key);
  if (code !== 'ok') throw new Error(`not created: ${code}`);
  return String(response.id);
}

const publicOne = () => publicCreation(digest(), [{ name: `${CANARY}.js`, sha256: digest() }]);
const MAKE = {
  public: publicOne,
  'private with a name': () => ({
    ...creation(digest()),
    artifact: { sha256: digest(), name: `${CANARY}.txt` },
  }),
};

// A COSE receipt needs a second submission in the log.
await make(creation(digest(), { schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0' }));

for (const [what, message] of Object.entries(MAKE)) {
  t.test(`erasing the statement of a ${what} one leaves leaf and proof, in every process`, async (t) => {
    for (const { name, call } of admin.surfaces) {
      const { artifact, ...sent } = message();
      const id = await make({ ...sent, artifact });
      await app.drain();
      // So that it would be cached, if it was.
      for (const url of app.baseUrls)
        for (const path of [id, `${id}/bundle`, id, `${id}/bundle`, id])
          await getFrom(url, `${PATH}/${path}`);
      const before = (await get(`${id}/bundle`)).json;
      const outcome = await call(eraseStatement, { id }, admin.token);
      t.match(outcome, { code: 'ok', response: { id, projectId: owner.projectId } }, name);
      const { statementErasedAt } = outcome.response;
      for (const url of app.baseUrls) {
        const { status, json: bundle } = await getFrom(url, `${PATH}/${id}/bundle`);
        t.equal(status, 200);
        const { dsseEnvelope, ...kept } = before.sigstore_bundle as JsonObject;
        t.ok(dsseEnvelope);
        t.strictSame(bundle, {
          ...before,
          submission: { ...(before.submission as JsonObject), statement_erased_at: statementErasedAt },
          sigstore_bundle: kept,
        });
        t.strictSame((await getFrom(url, `${PATH}/${id}`)).json.bundle, bundle);
        t.match(await getFrom(url, `${PATH}/${id}/bundle.sigstore.json`), {
          status: 410,
          json: { error: { code: 'statement.erased' } },
        });
        for (const format of ['bundle.json', 'bundle.tlog-proof', 'bundle.cose'])
          t.equal((await getFrom(url, `${PATH}/${id}/${format}`)).status, 200, format);
      }
      for (const surface of everywhere) {
        const { response } = await surface.call(getAttestation, { id }, owner.key);
        const { schema } = sent.metadata;
        t.match(response, {
          metadata: { schema },
          metadataState: 'METADATA_STATE_REDACTED',
          statementErasedAt,
        });
        t.strictSame(response.artifact, { sha256: artifact.sha256 }, surface.name);
        for (const gone of ['subjects', 'subjectCount', 'identity', 'metadataSalt'])
          t.notOk(gone in response);
        const page = await surface.call(listAttestations, { artifactSha256: artifact.sha256 }, owner.key);
        t.match(page.response.data, [{ id, statementErasedAt, artifact: { sha256: artifact.sha256 } }]);
      }
      t.match(await auditOf(app, id), [
        {
          action: AuditAction.ATTESTATION_STATEMENT_ERASED,
          actorKind: AuditActorKind.ADMIN,
          projectId: owner.projectId,
          requestId: outcome.requestId,
        },
      ]);
      const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
      const options = { trustRoots, artifactSha256: artifact.sha256, now: new Date() };
      const { verdict } = await verifyBundle((await get(`${id}/bundle`)).body.toString(), options);
      t.equal(verdict, 'could_not_check', 'the leaf is proven, and what it is of is not known');
    }
    await assertErasedEverywhere(t);
  });
}

/** The tables have no copy of what was erased, and all leaves are those of the log. */
async function assertErasedEverywhere(t: Test): Promise<void> {
  const left = findTraces(await dumpTables(app.pool), [Buffer.from(CANARY)]);
  t.same(
    left.filter((line) => /^submission/.test(line)),
    [],
  );
  const [{ treeSize } = { treeSize: 0 }] = await app.pool<{ treeSize: number }[]>`
    SELECT max(tree_size) AS "treeSize" FROM batch`;
  t.ok(treeSize > 0);
}

t.test('doing it again, and DELETE before or after, changes nothing more', async (t) => {
  const id = await make(publicOne());
  await rest.call(deleteAttestation, { id }, owner.key);
  const redacted = await rest.call(getAttestation, { id }, owner.key);
  const first = await admin.ask(eraseStatement, { id });
  t.same(await admin.ask(eraseStatement, { id }), first);
  const { code, response } = await rest.call(deleteAttestation, { id }, owner.key);
  t.equal(code, 'ok');
  t.equal(response.redactedAt, redacted.response.redactedAt, 'the time of the redaction stays');
  t.same(response.warnings ?? [], [], 'nothing shows the statement any more');
  t.equal((await auditOf(app, id)).length, 2, 'one entry for each');
  const headers = { 'idempotency-key': `erase-${id}` };
  const keyed = await admin.call(eraseStatement, { id }, headers);
  const again = await admin.call(eraseStatement, { id }, headers);
  t.same(again.response, keyed.response);
});

t.test('before it is sealed as well: the bundle that follows has no statement', async (t) => {
  const unseal = await app.holdSealing();
  const id = await make(publicOne());
  await admin.ask(eraseStatement, { id });
  await unseal();
  await app.drain();
  const { json } = await get(`${id}/bundle`);
  t.ok((json.submission as JsonObject).statement_erased_at);
  t.notOk('dsseEnvelope' in (json.sigstore_bundle as JsonObject));
});

t.test('what has no statement of its own, and what is not there, is an error', async (t) => {
  const id = await make(creation(digest(), RESULT));
  for (const { name, call } of admin.surfaces) {
    t.match(
      await call(eraseStatement, { id }, admin.token),
      { code: 'statement.not_stored', grpcCode: 9 },
      name,
    );
    const unknown = { id: NOTHING.submissionId };
    t.match(await call(eraseStatement, unknown, admin.token), { code: 'submission.not_found', grpcCode: 5 });
    for (const wrong of ['', 'x'.repeat(65)])
      t.equal((await call(eraseStatement, { id: wrong }, admin.token)).code, 'request.invalid');
  }
  t.match(await get(id), { json: { metadata: RESULT } });
});

t.test('a project cannot: the RPC takes the admin token only', async (t) => {
  const id = await make(publicOne());
  for (const { call } of admin.surfaces) {
    t.equal((await call(eraseStatement, { id }, owner.key)).code, 'auth.insufficient_scope');
    t.equal((await call(eraseStatement, { id }, undefined)).code, 'auth.missing_credentials');
  }
  t.match((await get(id)).json, { metadata: RESULT });
});

t.test('if the audit entry cannot be written, nothing is erased', async (t) => {
  const id = await make(publicOne());
  await app.pool.unsafe(`
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER fail BEFORE INSERT ON audit_entry EXECUTE FUNCTION fail()`);
  t.equal((await admin.call(eraseStatement, { id })).code, 'service.unavailable');
  await app.pool.unsafe('DROP FUNCTION fail CASCADE');
  t.match((await get(id)).json, { metadata: RESULT, subject_count: 1 });
  t.equal((await admin.call(eraseStatement, { id })).code, 'ok');
});

t.test('the command asks first, prints what it did, and is as idempotent', async (t) => {
  const env = { ATTEST_URL: app.baseUrl, ATTEST_ADMIN_TOKEN: admin.token, DATA_DIR: '/nowhere' };
  const attest = (...args: string[]) => runHere(['submissions', 'erase-statement', ...args], { env });
  const id = await make(publicOne());
  t.match(await attest(id), { code: 2, stderr: /--yes/ }, 'without a terminal nobody can be asked');
  t.match((await get(id)).json, { metadata: RESULT });
  t.match(await attest(id, '--yes'), { code: 0, stdout: new RegExp(`^${id}  statement erased at 20.*Z\n$`) });
  const { code, stdout } = await attest(id, '--yes', '--json');
  t.equal(code, 0);
  t.match(JSON.parse(stdout), { id, project_id: owner.projectId, statement_erased_at: /Z$/ });
  t.match(await attest(NOTHING.submissionId, '--yes'), { code: 1, stderr: /submission\.not_found/ });
});

t.test('all leaves and bundles are as they were, or without their statement', async (t) => {
  await app.drain();
  await assertConsistent(t, { ...app, acknowledged: [] });
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
