/** Statements of new submissions: which are stored, and that each is what its verifier reads. */
import { createHash, randomBytes } from 'node:crypto';
import t from 'tap';
import { StatementForm } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import { parseStatement } from '../../../../src/proof/statement/statement.js';
import {
  checkSubmission,
  stateSubmission,
  submitterOf,
} from '../../../../src/server/attestations/create/new-submission.js';
import { signedText } from '../../../../src/server/attestations/leaf-text.js';
import { readMetadata } from '../../../../src/server/attestations/metadata.js';
import type { Principal } from '../../../../src/server/core/principal.js';
import { createRandomSource } from '../../../../src/server/core/random.js';
import { loadSchemas } from '../../../../src/server/schema/registry.js';
import { digest, publicCreation, RESULT } from './public-samples.js';

const schemas = loadSchemas({});
const deps = { schemas, random: createRandomSource(), submissionClock: () => 1_795_374_000_123 };
const IDENTITY = {
  issuer: 'https://token.actions.githubusercontent.com',
  subject: 'repo:acme/app:ref:refs/heads/main',
  claims: { sha: 'ab'.repeat(20), repository: 'acme/app — é' },
};

function principal(identity?: typeof IDENTITY): Principal {
  return {
    id: 'key_1',
    projectId: 'prj_1',
    environment: Environment.LIVE,
    scopes: [],
    submissionWindows: [],
    readWindow: { windowSeconds: 1, limit: 1 },
    ...(identity && { identity }),
  };
}

type Request = Omit<Parameters<typeof checkSubmission>[1], 'artifact'> & {
  artifact: { sha256: string; name?: string };
};

function state(
  request: object,
  identity?: typeof IDENTITY,
  metadata: Parameters<typeof readMetadata>[0] = RESULT,
) {
  const submitter = submitterOf(principal(identity));
  const sent = {
    subjects: [],
    statement: StatementForm.UNSPECIFIED,
    validation: 0,
    ...request,
  } as unknown as Request;
  const checked = checkSubmission(deps, sent as never, readMetadata(metadata), submitter);
  return stateSubmission(deps, checked, submitter);
}

t.test('a private statement is stored if it names artifact or identity, and only then', async (t) => {
  const artifact = { sha256: digest() };
  t.equal(state({ artifact }).statement.stored, null);
  for (const [what, identity] of [
    [{ artifact: { ...artifact, name: 'a' } }, undefined],
    [{ artifact }, IDENTITY],
    [{ artifact: { ...artifact, name: 'a' } }, IDENTITY],
  ] as const) {
    const { statement, salt, commitment } = state(what, identity);
    t.equal(statement.stored?.version, 2);
    t.equal(statement.stored?.text, statement.text);
    t.same(statement.stored?.shown, { name: 'name' in what.artifact ? 'a' : undefined, identity });
    t.match(parseStatement(Buffer.from(statement.text)), { commitment, ...(identity && { identity }) });
    t.match(salt, /^[0-9a-f]{64}$/);
  }
});

t.test('a public one is stored, has the identity, and neither salt nor commitment', async (t) => {
  const { statement, salt, commitment } = state(publicCreation(digest(), [{ sha256: digest() }]), IDENTITY);
  t.same([salt, commitment], [null, null]);
  t.match(statement.stored, { version: 3, text: statement.text, shown: { identity: IDENTITY, subjects: 1 } });
  t.match(parseStatement(Buffer.from(statement.text)), { identity: IDENTITY });
  const digestOfAll = createHash('sha256').update(signedText(statement.text)).digest('hex');
  t.equal(statement.stored?.digest, digestOfAll);
});

t.test('the predicate is the metadata without its member schema, wherever that is', async (t) => {
  const { schema } = RESULT;
  for (const more of [
    {},
    { a: 1, zzz: [1] },
    { zzz: { schema } },
    { note: `"schema":"${schema}"`, a: { schema, b: { schema } } },
    { schemas: schema, Schema: schema, schem: '"' },
    { aaa: `","schema":"${schema}",` },
    JSON.parse(`{"__proto__":{"schema":"${schema}"}}`),
    { random: randomBytes(8).toString('hex') },
  ]) {
    const metadata = Object.assign(JSON.parse(JSON.stringify(RESULT)), more);
    const { schema: _, ...predicate } = readMetadata(metadata).value;
    const { text } = state(publicCreation(), undefined, metadata).statement;
    t.equal(
      text.slice(0, text.indexOf(',"predicateType":')),
      `{"_type":"https://in-toto.io/Statement/v1","predicate":${jcs(predicate)}`,
    );
    parseStatement(Buffer.from(text));
  }
});
