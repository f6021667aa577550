import canonicalize from 'canonicalize';
import t from 'tap';
import { fromUtf8, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import {
  MAX_PUBLIC_STATEMENT_BYTES,
  MAX_SUBJECTS,
  type PublicStatement,
  publicStatementText,
  subjectsOf,
} from '../../../src/proof/statement/public-statement.js';
import {
  isPublic,
  parseStatement,
  type StatementFields,
  statementText,
} from '../../../src/proof/statement/statement.js';
import type { Identity } from '../../../src/protocol/identity.js';

const IDENTITY: Identity = {
  issuer: 'https://token.actions.githubusercontent.com',
  subject: 'repo:acme/app:ref:refs/heads/main',
  claims: { repository: 'acme/app', ref: 'refs/heads/main' },
};

const SUBMISSION = {
  artifactSha256: 'ab'.repeat(32),
  submissionId: 'sub_01JZZZZZZZZZZZZZZZZZZZZZZZ',
  project: 'prj_01JZZZZZZZZZZZZZZZZZZZZZZZ',
  submittedAt: '2025-06-07T08:09:10.011Z',
  environment: 'live',
} as const;

const PRIVATE: StatementFields = { ...SUBMISSION, schema: 'purl', commitment: 'cd'.repeat(32) };

const PUBLIC: PublicStatement = {
  ...SUBMISSION,
  otherSubjects: [{ name: 'b.tar', sha256: 'ef'.repeat(32) }, { sha256: '01'.repeat(32) }],
  predicateType: 'https://in-toto.io/attestation/test-result/v0.1',
  predicate: { result: 'PASSED', configuration: [{ name: 'unit', uri: 'https://ci.example/1' }] },
};

const NAMED = { artifactName: 'dist/\u00e4 "a".tar\n', identity: IDENTITY };

t.test('a private statement with a name and an identity is JCS, and is read back', async (t) => {
  for (const fields of [PRIVATE, { ...PRIVATE, ...NAMED }]) {
    const text = statementText(fields);
    t.equal(text, canonicalize(JSON.parse(text)));
    t.strictSame(parseStatement(utf8(text)), fields);
  }
  const { subject, predicate } = JSON.parse(statementText({ ...PRIVATE, ...NAMED }));
  t.equal(subject[0].name, NAMED.artifactName);
  t.strictSame(predicate.identity, IDENTITY);
});

t.test('a public statement has the metadata as its predicate, and binds its submission', async (t) => {
  const fields = { ...PUBLIC, ...NAMED };
  const text = publicStatementText(fields);
  t.equal(text, canonicalize(JSON.parse(text)));
  const read = parseStatement(utf8(text));
  t.strictSame(read, fields);
  t.ok(isPublic(read));
  t.notOk(isPublic(PRIVATE));
  t.strictSame(JSON.parse(text), {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [
      {
        name: NAMED.artifactName,
        digest: { sha256: SUBMISSION.artifactSha256 },
        annotations: {
          attestation_service: {
            environment: 'live',
            identity: IDENTITY,
            project: SUBMISSION.project,
            submission_id: SUBMISSION.submissionId,
            submitted_at: SUBMISSION.submittedAt,
          },
        },
      },
      { name: 'b.tar', digest: { sha256: 'ef'.repeat(32) } },
      { digest: { sha256: '01'.repeat(32) } },
    ],
    predicateType: PUBLIC.predicateType,
    predicate: PUBLIC.predicate,
  });
  t.strictSame(subjectsOf(fields)[0], { name: NAMED.artifactName, sha256: SUBMISSION.artifactSha256 });
  t.equal(subjectsOf(fields).length, 3);
});

/** Statements that no version has made: of an unknown form, not canonical, or larger than any is. */
const MALFORMED: [what: string, text: string][] = [
  ['nothing', ''],
  ['no JSON', '{'],
  ['null', 'null'],
  ['a text', '"x"'],
  ['no object', '[]'],
  ['no subject', '{"predicateType":"https://example.com/x","predicate":{}}'],
  ['an empty list of subjects', '{"predicateType":"https://example.com/x","predicate":{},"subject":[]}'],
  ['subjects of null', '{"predicateType":"https://example.com/x","predicate":{},"subject":[null]}'],
  ['a depth of 60,000', `{"predicateType":"x","predicate":${'['.repeat(60_000)}`],
  ['whitespace', ` ${publicStatementText(PUBLIC)}`],
  ['another order of members', JSON.stringify(JSON.parse(publicStatementText(PUBLIC)), null, 1)],
  ['an unknown environment', publicStatementText(PUBLIC).replace('"live"', '"prod"')],
  [
    'a predicate that is a list',
    publicStatementText(PUBLIC).replace(/"predicate":\{.*?\]\}|"result".*?\}/, '"predicate":[]'),
  ],
  ['an unknown member', publicStatementText(PUBLIC).replace('{"_type"', '{"_a":1,"_type"')],
  ['an unknown annotation', publicStatementText(PUBLIC).replace('"environment"', '"a":1,"environment"')],
  [
    'a subject with another digest',
    publicStatementText(PUBLIC).replace('{"sha256":"01', '{"md5":"","sha256":"01'),
  ],
  ['a name that is a number', publicStatementText(PUBLIC).replace('"b.tar"', '7')],
  [
    'a duplicate member',
    publicStatementText(PUBLIC).replace('"predicateType"', '"predicateType":"x","predicateType"'),
  ],
  [
    'an identity without claims',
    publicStatementText({ ...PUBLIC, ...NAMED }).replace(/"claims":\{.*?\},/, ''),
  ],
  [
    'a private statement with an unknown member',
    statementText(PRIVATE).replace('{"environment"', '{"a":1,"environment"'),
  ],
  ['a private statement with a second subject', statementText(PRIVATE).replace(/\]\}$/, ',{}]}')],
  [
    'too many subjects',
    publicStatementText({ ...PUBLIC, otherSubjects: Array(MAX_SUBJECTS).fill({ sha256: '' }) }),
  ],
  [
    'more than 128 KiB',
    publicStatementText({ ...PUBLIC, predicate: { text: 'x'.repeat(MAX_PUBLIC_STATEMENT_BYTES) } }),
  ],
];

t.test('a statement of another form is a FormatError', async (t) => {
  for (const [what, text] of MALFORMED) t.throws(() => parseStatement(utf8(text)), FormatError, what);
  t.throws(() => parseStatement(new Uint8Array([0xff])), FormatError, 'no UTF-8');
  const whole = utf8(publicStatementText({ ...PUBLIC, ...NAMED }));
  for (let end = 0; end < whole.length; end += 7) {
    t.throws(() => parseStatement(whole.subarray(0, end)), FormatError, `${end} bytes`);
  }
});

t.test('a member named __proto__ of a predicate is data', async (t) => {
  const text = publicStatementText({ ...PUBLIC, predicate: JSON.parse('{"__proto__":{"x":1},"y":2}') });
  t.match(text, '"__proto__":{"x":1}');
  const read = parseStatement(utf8(text));
  t.equal(isPublic(read) && publicStatementText(read), text);
  t.equal(fromUtf8(utf8(text)), text);
});
