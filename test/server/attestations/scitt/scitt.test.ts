/** Signed statements registered with the running service, and the receipts and keys that SCITT clients get. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decode } from 'cborg';
import t from 'tap';
import { fromHex } from '../../../../src/proof/bytes/encoding.js';
import { parseReceipt } from '../../../../src/proof/cose/receipt.js';
import { verifyReceipt } from '../../../../src/proof/verify/verify-receipt.js';
import { startApp } from '../../../support/app.js';
import type { RestAnswer } from '../../../support/calling/rpc-clients.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { type StatementParts, signedStatement } from '../../../support/scitt/signed-statement.js';
import { submit } from '../../rpc/submitting.js';

const app = await startApp(t);
const owner = await newKey(app);
const stranger = await newKey(app);
const dir = t.testdir();
const COSE = { 'content-type': 'application/cose' };

const post = (
  body: Uint8Array,
  { key }: Pick<TestKey, 'key'> = owner,
  headers: Record<string, string> = COSE,
) => app.rest('/entries', { method: 'POST', apiKey: key, headers, body });
const get = (location: string, { key }: Pick<TestKey, 'key'> = owner) => app.rest(location, { apiKey: key });
const idOf = ({ headers }: RestAnswer) => String(headers.location).replace('/entries/', '');

/** An error's status, title and code. */
function problemOf({ status, headers, body }: RestAnswer) {
  const problem: Map<unknown, unknown> = decode(body, { useMaps: true });
  const entry = problem.get('urn:attestation-service:error') as Map<string, string> | undefined;
  const type = headers['content-type'];
  return { status, type, title: problem.get(-1), detail: problem.get(-2), code: entry?.get('code') };
}

const PROBLEM = 'application/concise-problem-details+cbor';

t.test('a statement is registered, and its entry has a receipt once its batch is witnessed', async (t) => {
  await submit(app, owner);
  const statement = signedStatement();
  const unseal = await app.holdSealing();
  const running = await post(statement);
  t.match(running, { status: 303, headers: { 'retry-after': '1', 'content-length': '0' } });
  t.match(running.headers.location, /^\/entries\/sub_[0-9A-Z]{26}$/);
  const { location = '' } = running.headers;
  const waiting = await get(location);
  t.match(waiting, { status: 202, headers: { location, 'retry-after': '1', 'content-length': '0' } });
  await unseal();
  await app.drain();
  const { status, headers, body } = await get(location);
  t.equal(status, 200);
  t.match(headers, { location, 'content-type': 'application/cose' });
  t.equal(parseReceipt(body).subject, idOf(running));
  const id = idOf(running);
  const { json } = await get(`/v1/attestations/${id}`);
  t.match(json, {
    artifact: { sha256: createHash('sha256').update(statement).digest('hex') },
    metadata: { schema: 'scitt.statement.v1', issuer: 'https://vendor.example', subject: 'pkg:npm/a@1.0.0' },
    metadata_state: 'valid',
  });
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  const leafHash = fromHex(String(json.leaf_sha256));
  const asked = { leafHash, submissionId: id, trustRoots, now: new Date() };
  t.match(await verifyReceipt(body, asked), { check: { status: 'passed' } });
  await t.test('attest verify goes from the statement to the receipt', async (t) => {
    const [file, bundle, receipt] = ['statement.cose', 'bundle.json', 'receipt.cose'].map((name) =>
      join(dir, name),
    ) as [string, string, string];
    await writeFile(file, statement);
    await writeFile(bundle, (await get(`/v1/attestations/${id}/bundle`)).body);
    await writeFile(receipt, body);
    const roots = join(dir, 'trust_roots.json');
    await writeFile(roots, JSON.stringify(trustRoots));
    const args = ['verify', file, '--bundle', bundle, '--receipt', receipt, '--trust-roots', roots];
    t.match(await runHere(args), { code: 0 });
  });
});

t.test('the same statement is the same entry, with any unprotected header', async (t) => {
  const parts: StatementParts = { subject: 'pkg:npm/b@1.0.0' };
  const first = await post(signedStatement(parts));
  t.equal(first.status, 303);
  await app.drain();
  const unprotected = new Map([[394, [Buffer.from('a receipt')]]]);
  for (const sent of [signedStatement(parts), signedStatement({ ...parts, unprotected })]) {
    const again = await post(sent);
    t.equal(again.status, 201);
    t.match(again.headers, { location: first.headers.location });
    t.equal(parseReceipt(again.body).subject, idOf(first));
  }
  const others = await Promise.all([1, 2, 3].map(() => post(signedStatement({ subject: 'at once' }))));
  t.equal(new Set(others.map(idOf)).size, 1, 'sent at once');
  const sameProject = await newKey(app, { projectId: owner.projectId });
  t.equal(
    idOf(await post(signedStatement(parts), sameProject)),
    idOf(first),
    'by another key of the project',
  );
  const theirs = await post(signedStatement(parts), stranger);
  t.equal(theirs.status, 303);
  t.not(idOf(theirs), idOf(first), 'another project has an entry of its own');
});

t.test('entries of another project, and those that never were, are not found', async (t) => {
  const { headers } = await post(signedStatement({ subject: 'mine' }));
  for (const location of [headers.location, '/entries/sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ', '/entries/x'])
    t.match(problemOf(await get(String(location), stranger)), {
      status: 404,
      type: PROBLEM,
      title: 'Not Found',
      code: 'submission.not_found',
    });
});

t.test('errors are concise problem details', async (t) => {
  const good = signedStatement({ subject: 'errors' });
  const reader = await newKey(app, { scopes: ['attestations:read'] });
  for (const [answer, status, title, code] of [
    [await post(Buffer.from('d2')), 400, 'Malformed request', 'scitt.malformed'],
    [await post(new Uint8Array()), 400, 'Malformed request', 'scitt.malformed'],
    [await post(signedStatement({ algorithm: 5 })), 400, 'Bad Signature Algorithm', 'scitt.bad_algorithm'],
    [await post(signedStatement({ payload: null })), 400, 'Payload Missing', 'scitt.payload_missing'],
    [await post(signedStatement({ header: new Map([[2, [99]]]) })), 400, 'Rejected', 'scitt.rejected'],
    [await post(good, { key: 'att_live_wrong' }), 401, 'Unauthorized', 'auth.invalid_key'],
    [await post(good, reader), 403, 'Forbidden', 'auth.insufficient_scope'],
    [
      await post(good, owner, { 'content-type': 'application/json' }),
      415,
      'Unsupported Media Type',
      'request.unsupported_media_type',
    ],
    [
      await post(signedStatement({ payload: Buffer.alloc(64 * 1024) })),
      413,
      'Payload Too Large',
      'request.too_large',
    ],
    [await post(Buffer.alloc(200 * 1024)), 413, 'Payload Too Large', 'request.too_large'],
  ] as const) {
    const problem = problemOf(answer);
    t.match(problem, { status, type: PROBLEM, title, code }, code);
    t.type(problem.detail, 'string');
  }
  const type = { 'content-type': 'Application/SCITT-statement+cose; a=b' };
  t.equal((await post(good, owner, type)).status, 303);
});
