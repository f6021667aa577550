/** Public statements on the server: what is stored, answered, listed, found and proven. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService, StatementForm } from '../../../../gen/attestation/v1/attestations_pb.js';
import { createClient } from '../../../../src/client/client.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { startApp } from '../../../support/app.js';
import type { Outcome } from '../../../support/calling/surfaces.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertConsistent } from '../../../support/judging/consistent.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation } from '../../rpc/samples.js';
import { digest, PREDICATE, PREDICATE_TYPE, publicCreation, RESULT, statementOf } from './public-samples.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const owner = await newKey(app);
const stranger = await newKey(app);
const { createAttestation, batchCreateAttestations, getAttestation, listAttestations, deleteAttestation } =
  AttestationService.method;
const { updateAttestation } = AttestationService.method;
const [rest] = surfaces;
if (rest === undefined) throw new Error('there is no REST surface');
const PATH = '/v1/attestations';

const get = async (path: string, { key } = owner) => app.rest(`${PATH}/${path}`, { apiKey: key });
const idsOf = ({ code, message, response }: Outcome) => {
  if (code !== 'ok') throw new Error(`${code}: ${message}`);
  return ((response.data ?? []) as JsonObject[]).map(({ id }) => id);
};

const SUBJECTS = (): { name?: string; sha256: string }[] => [
  { name: 'dist/app.js', sha256: digest() },
  { name: 'ünïcode — 💣 "\\', sha256: digest() },
  { sha256: digest() },
];

t.test('a public submission is answered, read, listed and proven alike on every surface', async (t) => {
  for (const { name, call } of surfaces) {
    const artifact = { sha256: digest(), name: 'report.xml' };
    const subjects = SUBJECTS();
    const created = await call(createAttestation, { ...publicCreation(), artifact, subjects }, owner.key);
    t.equal(created.code, 'ok', name);
    const id = String(created.response.id);
    const shown = {
      id,
      artifact,
      metadata: RESULT,
      statement: 'STATEMENT_FORM_PUBLIC',
      subjectCount: 3,
      subjects,
    };
    t.match(created.response, shown, name);
    t.notOk('metadataSalt' in created.response, name);
    t.match((await call(getAttestation, { id }, owner.key)).response, shown, name);
    const { response: page } = await call(listAttestations, { artifactSha256: artifact.sha256 }, owner.key);
    const [listed] = page.data as JsonObject[];
    t.match(listed, { id, artifact, statement: 'STATEMENT_FORM_PUBLIC', subjectCount: 3 }, name);
    t.notOk(listed && 'subjects' in listed, name);
    await app.drain();
    const read = await call(getAttestation, { id }, owner.key);
    t.match(read.response, shown, name);
    const { json: bundle } = await get(`${id}/bundle`);
    t.strictSame(statementOf(bundle), {
      _type: 'https://in-toto.io/Statement/v1',
      predicate: PREDICATE,
      predicateType: PREDICATE_TYPE,
      subject: [
        {
          annotations: {
            attestation_service: {
              environment: 'live',
              project: owner.projectId,
              submission_id: id,
              submitted_at: (bundle.submission as JsonObject).submitted_at,
            },
          },
          digest: { sha256: artifact.sha256 },
          name: artifact.name,
        },
        ...subjects.map(({ sha256, ...named }) => ({ digest: { sha256 }, ...named })),
      ],
    });
  }
});

t.test('REST shows it as documented, and a private one without these members', async (t) => {
  const subjects = SUBJECTS();
  const artifact = { sha256: digest() };
  const body = { artifact, metadata: RESULT, statement: 'public', subjects: subjects as JsonObject[] };
  const { status, json } = await app.rest(PATH, { apiKey: owner.key, body });
  t.equal(status, 201);
  t.match(json, { statement: 'public', subject_count: 3, subjects });
  t.notOk('metadata_salt' in json);
  const alone = { ...body, subjects: [] };
  const other = (await app.rest(PATH, { apiKey: owner.key, body: alone })).json;
  t.match(other, { statement: 'public', subject_count: 0 });
  t.notOk('subjects' in other);
  for (const statement of [{}, { statement: 'private' }] as JsonObject[]) {
    const body = { ...creation(digest(), RESULT), ...statement };
    const { json: shown } = await app.rest(PATH, { apiKey: owner.key, body });
    for (const name of ['statement', 'subject_count', 'subjects', 'identity', 'statement_erased_at'])
      t.notOk(name in shown, name);
    t.match(shown.metadata_salt, /^[0-9a-f]{64}$/);
  }
});

t.test('the bundle verifies, and so do bundles and leaves of all others of the log', async (t) => {
  const artifact = { sha256: digest(), name: 'a' };
  const sent = [
    { ...publicCreation(), artifact },
    { ...creation(artifact.sha256), artifact },
    creation(artifact.sha256),
    { ...publicCreation(artifact.sha256, SUBJECTS()) },
  ];
  const ids: string[] = [];
  for (const message of sent)
    ids.push(String((await rest.call(createAttestation, message, owner.key)).response.id));
  await app.drain();
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  for (const id of ids) {
    for (let i = 0; i < 3; i++) {
      const bundle = (await get(`${id}/bundle`)).body.toString();
      const options = { trustRoots, artifactSha256: artifact.sha256, now: new Date() };
      const { verdict, summary } = await verifyBundle(bundle, options);
      t.equal(verdict, 'verified', summary);
      t.strictSame((await get(id)).json.bundle, JSON.parse(bundle));
    }
  }
  t.match(statementOf((await get(`${ids[1]}/bundle`)).json), { subject: [{ name: 'a' }] });
  for (const format of ['bundle.sigstore.json', 'bundle.tlog-proof', 'bundle.cose'])
    t.equal((await get(`${ids[0]}/${format}`)).status, 200, format);
  await assertConsistent(t, { ...app, acknowledged: [] });
});

t.test('every subject is found by its digest, by the project and no other', async (t) => {
  const subjects = Array.from({ length: 40 }, (_, i) => ({ name: `file ${i}`, sha256: digest() }));
  const message = publicCreation(digest(), subjects);
  const { response } = await rest.call(createAttestation, message, owner.key);
  for (const { sha256 } of [message.artifact, ...subjects]) {
    const page = await rest.call(listAttestations, { artifactSha256: sha256.toUpperCase() }, owner.key);
    t.same(idsOf(page), [response.id]);
    const other = await rest.call(listAttestations, { artifactSha256: sha256 }, stranger.key);
    t.same(idsOf(other), []);
  }
});

t.test('another project sees neither submission nor bundle, and does not change it', async (t) => {
  const { response } = await rest.call(createAttestation, publicCreation(), owner.key);
  const id = String(response.id);
  await app.drain();
  for (const path of [id, `${id}/bundle`, `${id}/bundle.json`, `${id}/bundle.sigstore.json`])
    t.match(await get(path, stranger), { status: 404, json: { error: { code: 'submission.not_found' } } });
  for (const { call, name } of surfaces)
    t.equal((await call(deleteAttestation, { id }, stranger.key)).code, 'submission.not_found', name);
});

t.test('it cannot be corrected', async (t) => {
  const { response } = await rest.call(createAttestation, publicCreation(), owner.key);
  for (const { name, call } of surfaces) {
    const { code, status, grpcCode } = await call(
      updateAttestation,
      { id: String(response.id), metadata: RESULT },
      owner.key,
    );
    t.equal(code, 'statement.public', name);
    t.equal(name === 'REST' ? status : grpcCode, name === 'REST' ? 409 : 9);
  }
});

t.test('DELETE erases what the API shows and finds, and warns that the bundle shows it', async (t) => {
  for (const { name, call } of surfaces) {
    const subjects = SUBJECTS();
    const artifact = { sha256: digest(), name: 'report.xml' };
    const made = await call(createAttestation, { ...publicCreation(), artifact, subjects }, owner.key);
    const id = String(made.response.id);
    await app.drain();
    const before = (await get(`${id}/bundle`)).body.toString();
    const { code, response } = await call(deleteAttestation, { id }, owner.key);
    t.equal(code, 'ok', name);
    const { schema } = RESULT;
    const shown = {
      metadata: { schema },
      metadataState: 'METADATA_STATE_REDACTED',
      statement: 'STATEMENT_FORM_PUBLIC',
    };
    t.match(response, { ...shown, warnings: [{ code: 'statement.public' }] }, name);
    const again = await call(deleteAttestation, { id }, owner.key);
    t.same(again.response.warnings, response.warnings, name);
    for (const { response: read } of [
      await call(getAttestation, { id }, owner.key),
      await call(deleteAttestation, { id }, owner.key),
    ]) {
      t.match(read, shown, name);
      for (const gone of ['subjects', 'subjectCount', 'metadataSalt']) t.notOk(gone in read, gone);
      t.strictSame(read.artifact, { sha256: artifact.sha256 });
    }
    const listOf = async (artifactSha256: string) =>
      idsOf(await call(listAttestations, { artifactSha256 }, owner.key));
    t.same(await listOf(artifact.sha256), [id], name);
    for (const { sha256 } of subjects) t.same(await listOf(sha256), [], name);
    t.equal((await get(`${id}/bundle`)).body.toString(), before);
  }
});

t.test('a batch has public, private and wrong items side by side', async (t) => {
  for (const { name, call } of surfaces) {
    const subjects = SUBJECTS();
    const items = [
      publicCreation(digest(), subjects),
      creation(digest(), RESULT),
      { ...creation(digest()), artifact: { sha256: digest(), name: 'named' } },
      { ...publicCreation(), metadata: creation('').metadata },
      { ...publicCreation(), validation: 2 },
      { ...creation(digest()), subjects },
    ];
    const { response } = await call(batchCreateAttestations, { items } as never, owner.key);
    const results = response.results as JsonObject[];
    t.match(
      results,
      [
        { submission: { statement: 'STATEMENT_FORM_PUBLIC', subjectCount: 3 } },
        { outcome: 'ITEM_OUTCOME_CREATED' },
        { submission: { artifact: { name: 'named' } } },
        { error: { code: 'statement.no_predicate_type' } },
        { error: { code: 'request.invalid', details: { errors: [{ path: '/validation' }] } } },
        { error: { code: 'request.invalid', details: { errors: [{ path: '/subjects' }] } } },
      ],
      name,
    );
    await app.drain();
    const submission = results[0]?.submission as JsonObject;
    const { subject } = statementOf((await get(`${submission.id}/bundle`)).json) as { subject: unknown[] };
    t.equal(subject.length, 4, name);
  }
  await assertConsistent(t, { ...app, acknowledged: [] });
});

t.test('the client library passes statement, subjects and names', async (t) => {
  const { attestations } = createClient({ baseUrl: app.baseUrl, apiKey: owner.key });
  const artifact = { sha256: digest(), name: 'a' };
  const subjects = SUBJECTS();
  const made = await attestations.create({ artifact, metadata: RESULT, statement: 'public', subjects });
  t.equal(made.statement, StatementForm.PUBLIC);
  t.equal(made.artifact?.name, 'a');
  t.equal(made.subjects.length, 3);
  for (const wrong of [
    { statement: 'open' },
    { subjects: [{ digest: digest() }] },
    { subjects: 'x' },
  ] as object[])
    await t.rejects(attestations.create({ artifact, metadata: RESULT, ...wrong }), TypeError);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
