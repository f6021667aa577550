import { toBase64, toHex, utf8 } from '../../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../../src/proof/bytes/primitives.js';
import { otherGood } from '../../verifying.js';
import { OTHER_ARTIFACT, theirs } from '../public-sample.js';
import { annotation, type Edits, envelope, passes, restate, statementOf } from './edits.js';

/** Edits of what is signed. */
export const STATEMENT: Edits = [
  ['a result that passed', restate(passes)],
  [
    'the predicate of another submission',
    restate((s) => Object.assign(s, { predicate: statementOf(theirs).predicate })),
  ],
  ['a predicate with a member more', restate((s) => Object.assign(s.predicate, { warnedTests: [] }))],
  ['an empty predicate', restate((s) => Object.assign(s, { predicate: {} }))],
  [
    'another predicate type',
    restate((s) => Object.assign(s, { predicateType: 'https://slsa.dev/provenance/v1' })),
  ],
  [
    'the digest of another artifact',
    restate((s) => Object.assign(s.subject[0].digest, { sha256: toHex(sha256(OTHER_ARTIFACT)) })),
  ],
  ['a subject more', restate((s) => s.subject.push({ digest: { sha256: toHex(sha256(OTHER_ARTIFACT)) } }))],
  ['a subject less', restate((s) => s.subject.pop())],
  ['another name of the artifact', restate((s) => Object.assign(s.subject[0], { name: 'dist/release.tar' }))],
  [
    'subjects whose names are swapped',
    restate((s) => ([s.subject[0].name, s.subject[1].name] = [s.subject[1].name, s.subject[0].name])),
  ],
  [
    'another project',
    restate((s) => Object.assign(annotation(s), { project: annotation(statementOf(theirs)).project })),
  ],
  ['another environment', restate((s) => Object.assign(annotation(s), { environment: 'test' }))],
  [
    'another submission',
    restate((s) =>
      Object.assign(annotation(s), { submission_id: annotation(statementOf(theirs)).submission_id }),
    ),
  ],
  [
    'an earlier submission',
    restate((s) => Object.assign(annotation(s), { submitted_at: '2024-06-07T11:59:59.123Z' })),
  ],
  ['no annotation', restate((s) => delete s.subject[0].annotations)],
  [
    'another subject of the identity',
    restate((s) =>
      Object.assign(annotation(s).identity, { subject: 'repo:acme/release:ref:refs/heads/main' }),
    ),
  ],
  [
    'another issuer of the identity',
    restate((s) => Object.assign(annotation(s).identity, { issuer: 'https://gitlab.com' })),
  ],
  [
    'another claim of the identity',
    restate((s) => Object.assign(annotation(s).identity.claims, { sha: 'decade' })),
  ],
  ['a claim more', restate((s) => Object.assign(annotation(s).identity.claims, { ref: 'refs/tags/v1' }))],
  [
    'the identity of another submission',
    restate((s) => Object.assign(annotation(s), { identity: annotation(statementOf(theirs)).identity })),
  ],
  ['no identity', restate((s) => delete annotation(s).identity)],
  [
    'issuer and subject swapped',
    restate((s) => {
      const { issuer, subject } = annotation(s).identity;
      Object.assign(annotation(s).identity, { issuer: subject, subject: issuer });
    }),
  ],
  [
    'a statement with whitespace',
    (b) => Object.assign(envelope(b), { payload: toBase64(utf8(JSON.stringify(statementOf(b), null, 1))) }),
  ],
  [
    'a private statement of the same submission',
    (b) => Object.assign(envelope(b), { payload: otherGood.sigstore_bundle.dsseEnvelope.payload }),
  ],
  [
    'the payload of another submission',
    (b) => Object.assign(envelope(b), { payload: envelope(theirs).payload }),
  ],
];
