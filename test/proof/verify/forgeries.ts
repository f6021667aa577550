/** Forgeries of a public statement with an identity: a table for the library, the command line and the verify page. */
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { fromBase64, toBase64, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../src/proof/bytes/jcs.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { dsseKeyHint, IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../src/proof/statement/dsse.js';
import { leafOf } from '../../../src/proof/statement/leaf.js';
import { BATCH, ed25519, makeService } from '../sample.js';
import { type Bundle, good, otherGood, service } from '../verifying.js';
import { makePublic, mine, OTHER_ARTIFACT, theirs } from './public-sample.js';

/** A forged bundle; `artifact` is the file that it is given for, by default the one that was attested. */
export type Forgery = { readonly what: string; readonly bundle: JsonObject; readonly artifact?: Uint8Array };

type Change = (bundle: Bundle) => unknown;
type Json = ReturnType<typeof JSON.parse>;

const forger = await makeService(join(t.testdir(), 'forger'));
const forgers = await makePublic({ ...forger, origin: service.origin });

const sigstore = (b: Bundle) => b.sigstore_bundle;
const envelope = (b: Bundle) => b.sigstore_bundle.dsseEnvelope;
const material = (b: Bundle) => b.sigstore_bundle.verificationMaterial;
const entry = (b: Bundle) => material(b).tlogEntries[0]!;
const stamps = (b: Bundle): Json => material(b);

/** Edits the signed statement, as canonical JSON. */
function restate(change: (statement: Json) => unknown): Change {
  return (bundle) => {
    const statement = statementOf(bundle);
    change(statement);
    Object.assign(envelope(bundle), { payload: toBase64(utf8(jcs(statement))) });
  };
}

function statementOf(bundle: Bundle): Json {
  return JSON.parse(Buffer.from(envelope(bundle).payload, 'base64').toString());
}

const annotation = (statement: Json) => statement.subject[0].annotations.attestation_service;

/** Edits the statement and signs it with the forger's key; the leaf is that of the new signature. */
function resign(change: (statement: Json) => unknown, more: Change = () => {}): Change {
  return (bundle) => {
    restate(change)(bundle);
    const payload = fromBase64(envelope(bundle).payload);
    const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, payload);
    const { signature, record } = leafOf(pae, forger.dsse.sign(pae), forger.dsse.publicKey);
    Object.assign(envelope(bundle).signatures[0]!, { sig: toBase64(signature) });
    Object.assign(material(bundle).publicKey, { hint: dsseKeyHint(forger.dsse.publicKey) });
    Object.assign(entry(bundle), { canonicalizedBody: toBase64(record) });
    Object.assign(bundle.submission, { leaf_sha256: toHex(leafHash(record)) });
    more(bundle);
  };
}

const passes = (statement: Json) => Object.assign(statement.predicate, { result: 'PASSED' });

/** A checkpoint of the batch's size with another root, by a log key of the forger's. */
function ownCheckpoint(rootHash: Uint8Array): string {
  return signCheckpoint({ origin: service.origin, size: BATCH.treeSize, rootHash }, ed25519());
}

function setCheckpoint(bundle: Bundle, note: string): void {
  bundle.checkpoints[0]!.note = note;
  Object.assign(entry(bundle).inclusionProof.checkpoint, { envelope: note });
}

/** Edits of what is signed. */
const STATEMENT: readonly [what: string, change: Change][] = [
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

/** Parts of other submissions, of the same batch or of a private bundle. */
const SPLICED: readonly [what: string, change: Change][] = [
  [
    'the signature of another submission',
    (b) => Object.assign(envelope(b), { signatures: envelope(theirs).signatures }),
  ],
  [
    'the envelope of another submission',
    (b) => Object.assign(sigstore(b), { dsseEnvelope: envelope(theirs) }),
  ],
  [
    'the Sigstore bundle of another submission',
    (b) => Object.assign(b, { sigstore_bundle: sigstore(theirs) }),
  ],
  [
    'the log entry of another submission',
    (b) => Object.assign(material(b), { tlogEntries: material(theirs).tlogEntries }),
  ],
  [
    'the leaf record of another submission',
    (b) => Object.assign(entry(b), { canonicalizedBody: entry(theirs).canonicalizedBody }),
  ],
  ['the index of another submission', (b) => Object.assign(entry(b), { logIndex: entry(theirs).logIndex })],
  [
    'the inclusion proof of another submission',
    (b) => Object.assign(b.checkpoints[0]!, { inclusion_proof: theirs.checkpoints[0]!.inclusion_proof }),
  ],
  [
    'the later proof of another submission',
    (b) => Object.assign(b.checkpoints[1]!, { inclusion_proof: theirs.checkpoints[1]!.inclusion_proof }),
  ],
  ['the submission of another bundle', (b) => Object.assign(b, { submission: theirs.submission })],
  ['the checkpoints of another log', (b) => Object.assign(b, { checkpoints: otherGood.checkpoints })],
  [
    'the evidence of another log',
    (b) => Object.assign(b.witnesses[1]!, { evidence: otherGood.witnesses[1]!.evidence, detail: {} }),
  ],
  [
    'the stamp of another submission',
    (b) => Object.assign(stamps(b), { timestampVerificationData: stamps(theirs).timestampVerificationData }),
  ],
  [
    'a stamp over the checkpoint in place of the signature',
    (b) =>
      Object.assign(stamps(b).timestampVerificationData.rfc3161Timestamps[0], {
        signedTimestamp: b.witnesses[1]!.evidence,
      }),
  ],
  [
    'a stamp over the signature in place of the checkpoint',
    (b) =>
      Object.assign(b.witnesses[1]!, {
        evidence: stamps(b).timestampVerificationData.rfc3161Timestamps[0].signedTimestamp,
        detail: {},
      }),
  ],
  [
    'the envelope of a private submission',
    (b) =>
      Object.assign(sigstore(b), { dsseEnvelope: (good as unknown as Bundle).sigstore_bundle.dsseEnvelope }),
  ],
];

/** The bundle as the service gives it once it has erased the statement. */
export function erased(bundle: JsonObject): Bundle {
  const copy = structuredClone(bundle) as unknown as Bundle;
  const { dsseEnvelope: _, ...others } = copy.sigstore_bundle;
  const submission = { ...copy.submission, statement_erased_at: '2025-07-01T00:00:00Z' };
  return { ...copy, submission, sigstore_bundle: others as Bundle['sigstore_bundle'] };
}

/** Statements that were erased, restored by hand. */
const RESTORED: readonly [what: string, change: Change][] = [
  [
    'an erased statement, written again with another result',
    (b) => {
      const restored = structuredClone(b);
      restate(passes)(restored);
      Object.assign(b, erased(b as unknown as JsonObject));
      delete b.submission.statement_erased_at;
      Object.assign(sigstore(b), { dsseEnvelope: envelope(restored) });
    },
  ],
  [
    'an erased statement that is there',
    (b) => Object.assign(b.submission, { statement_erased_at: '2025-07-01T00:00:00Z' }),
  ],
  [
    'an erased statement without its mark',
    (b) => {
      Object.assign(b, erased(b as unknown as JsonObject));
      delete b.submission.statement_erased_at;
    },
  ],
  [
    'an erased statement in the log of another submission',
    (b) => {
      Object.assign(b, erased(b as unknown as JsonObject));
      Object.assign(entry(b), { canonicalizedBody: entry(theirs).canonicalizedBody });
    },
  ],
  [
    'an erased statement by a key of the forger',
    (b) => {
      resign(passes)(b);
      Object.assign(b, erased(b as unknown as JsonObject));
    },
  ],
];

/** Keys of the forger's. */
const OWN_KEYS: readonly [what: string, change: Change][] = [
  ['a result that passed, signed by a key of the forger', resign(passes)],
  [
    'that under the hint of the trusted key',
    resign(passes, (b) =>
      Object.assign(material(b).publicKey, { hint: material(mine as unknown as Bundle).publicKey.hint }),
    ),
  ],
  [
    'that beside the trusted signature',
    (b) => {
      const forged = structuredClone(b);
      resign(passes)(forged);
      envelope(b).signatures.push(envelope(forged).signatures[0]!);
    },
  ],
  [
    'a checkpoint of the same root, signed by a key of the forger',
    (b) => setCheckpoint(b, ownCheckpoint(fromBase64(entry(b).inclusionProof.rootHash))),
  ],
  ['a whole bundle by keys of the forger', (b) => Object.assign(b, structuredClone(forgers.mine))],
  [
    'that with the trusted hint',
    (b) => {
      const hint = material(b).publicKey.hint;
      Object.assign(b, structuredClone(forgers.mine));
      Object.assign(material(b).publicKey, { hint });
    },
  ],
  [
    'the trusted statement in a log of the forger',
    (b) => Object.assign(b, { checkpoints: structuredClone(forgers.mine.checkpoints) }),
  ],
  [
    'evidence by an authority of the forger under the trusted name',
    (b) =>
      Object.assign(b.witnesses[1]!, {
        evidence: forgers.mine.witnesses[1]!.evidence,
        detail: forgers.mine.witnesses[1]!.detail,
      }),
  ],
];

/** Witnesses and times. */
const WITNESSES: readonly [what: string, change: Change][] = [
  ['no required witness', (b) => b.witnesses.splice(1, 1)],
  ['no witness', (b) => Object.assign(b, { witnesses: [] })],
  ['a required witness under another name', (b) => Object.assign(b.witnesses[1]!, { name: 'tsa2' })],
  [
    'another witness under the name of the required one',
    (b) => Object.assign(b.witnesses.splice(1, 1) && b.witnesses[1]!, { name: 'tsa' }),
  ],
  ['a required witness of another kind', (b) => Object.assign(b.witnesses[1]!, { kind: 'log_witness' })],
  [
    'an earlier time than the stamp states',
    (b) => Object.assign(b.witnesses[1]!.detail, { gen_time: '2024-06-07T12:00:01.000Z' }),
  ],
  [
    'an earlier submitted_at',
    (b) => Object.assign(b.submission, { submitted_at: '2024-06-07T11:59:59.123Z' }),
  ],
  ['a required witness on a later checkpoint', (b) => Object.assign(b.witnesses[1]!, { tree_size: 1300 })],
];

/** All of them. */
export const FORGERIES: readonly Forgery[] = [
  { what: 'an artifact that was not attested', bundle: mine, artifact: utf8('something else') },
  { what: 'the artifact of another submission', bundle: mine, artifact: OTHER_ARTIFACT },
  ...[...STATEMENT, ...SPLICED, ...RESTORED, ...OWN_KEYS, ...WITNESSES].map(([what, change]) => {
    const bundle = structuredClone(mine);
    change(bundle as unknown as Bundle);
    return { what, bundle };
  }),
];
