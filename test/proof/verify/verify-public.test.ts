import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { isPublic } from '../../../src/proof/statement/statement.js';
import { PROJECT } from '../sample.js';
import { failures, good, sample, verify } from '../verifying.js';
import { FORGERIES } from './forgeries/forgeries.js';
import { erased } from './forgeries/restored.js';
import { mine, OTHER_ARTIFACT, SECOND_ARTIFACT, STATED } from './public-sample.js';

t.test('a public statement is verified, with its predicate and identity', async (t) => {
  const { verdict, summary, statement } = await verify(mine);
  t.equal(verdict, 'verified', summary);
  t.match(
    summary,
    'submitted by repo:acme/app:ref:refs/heads/main of https://token.actions.githubusercontent.com,',
  );
  t.ok(statement && isPublic(statement));
  t.match(statement, STATED);
});

t.test('each subject of a public statement verifies, and nothing else', async (t) => {
  t.equal((await verify(mine, { artifact: SECOND_ARTIFACT })).verdict, 'verified');
  const upper = STATED.otherSubjects[0]?.sha256.toUpperCase();
  t.equal((await verify(mine, { artifact: undefined, artifactSha256: upper })).verdict, 'verified');
  t.strictSame(failures(await verify(mine, { artifact: OTHER_ARTIFACT })), ['artifact.mismatch']);
});

t.test('metadata is compared with the predicate of a public statement', async (t) => {
  const metadata = { schema: 'intoto.test_result.v0.1', ...STATED.predicate };
  t.equal((await verify(mine, { metadata })).verdict, 'verified');
  t.equal((await verify(mine, { metadata: JSON.stringify(metadata) })).verdict, 'verified');
  t.equal((await verify(mine, { metadata })).metadata, undefined, 'its schema is not in the statement');
  for (const other of [{ ...metadata, result: 'PASSED' }, STATED.predicate, { schema: metadata.schema }]) {
    t.strictSame(failures(await verify(mine, { metadata: other })), ['metadata.mismatch']);
  }
});

t.test('the identity that is asked for must be the one of the statement', async (t) => {
  const { issuer, subject } = STATED.identity;
  const right = [
    { issuer },
    { identity: subject },
    { issuer, identity: 'repo:acme/app:*' },
    { identity: '*' },
  ];
  for (const asked of right)
    t.equal((await verify(mine, { ...asked, project: PROJECT })).verdict, 'verified');
  const wrong = [
    { issuer: 'https://gitlab.com' },
    { issuer: `${issuer}/` },
    { identity: 'repo:acme/app' },
    { identity: 'repo:acme/*:environment:*' },
    { issuer, identity: 'repo:evil/*' },
    { issuer: '*', identity: subject },
  ];
  for (const asked of wrong) t.strictSame(failures(await verify(mine, asked)), ['identity.mismatch']);
  t.strictSame(failures(await verify(good, { issuer })), ['identity.missing']);
  t.equal((await verify(good)).verdict, 'verified');
  t.equal(sample.statement.identity, undefined);
});

t.test('of an erased statement the leaf is checked, and nothing of the statement is claimed', async (t) => {
  const result = await verify(erased(mine));
  t.equal(result.verdict, 'could_not_check', failures(result).join());
  t.match(result.summary, 'the service erased the signed statement at 2025-07-01T00:00:00.000Z');
  t.equal(result.statement, undefined);
  const statuses = Object.fromEntries(result.steps.map(({ name, status }) => [name, status]));
  t.match(statuses, {
    shape: 'passed',
    statement: 'not_checked',
    signature: 'not_checked',
    leaf: 'not_checked',
  });
  t.match(statuses, { inclusion: 'passed', checkpoint: 'passed', witnesses: 'passed', policy: 'passed' });
  const renamed = erased(mine);
  Object.assign(renamed.submission, { artifact_sha256: 'ab'.repeat(32) });
  t.equal((await verify(renamed)).verdict, 'could_not_check');
  t.equal((await verify(erased(good))).verdict, 'could_not_check', 'of a private one');
});

t.test('no forgery is verified', async (t) => {
  t.ok(FORGERIES.length >= 49, `${FORGERIES.length} kinds`);
  t.equal(new Set(FORGERIES.map(({ what }) => what)).size, FORGERIES.length);
  for (const { what, bundle, artifact } of FORGERIES) {
    const result = await verify(bundle, artifact && { artifact });
    t.equal(result.verdict, 'not_verified', `${what}: ${result.summary}`);
    t.ok(failures(result).length > 0, what);
  }
});

t.test('a forgery is not verified as bytes either', async (t) => {
  for (const { what, bundle, artifact } of FORGERIES) {
    const result = await verify(utf8(JSON.stringify(bundle)), artifact && { artifact });
    t.equal(result.verdict, 'not_verified', what);
  }
});
