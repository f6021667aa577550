/** A bundle, checked by hand, by the service's verifier and, for some, by openssl and Sigstore's verifier. */
import { createHash, createPublicKey, verify } from 'node:crypto';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import type { EnvironmentName } from '../../../src/protocol/environment.js';
import { verifyWithOpenssl, verifyWithSigstore } from '../../support/judging/foreign-verifiers.js';
import { readCheckpoint } from './checkpoint.js';
import { followPath, hashLeaf } from './merkle.js';
import { knownLog, type Roots } from './observe.js';

/** What of a bundle is read here. */
export type Bundle = {
  submission: { id: string; artifact_sha256: string; leaf_sha256: string };
  sigstore_bundle: {
    dsseEnvelope: { payload: string; payloadType: string; signatures: { sig: string }[] };
    verificationMaterial: { tlogEntries: { logIndex: string; canonicalizedBody: string }[] };
  };
  checkpoints: { tree_size: number; note: string; inclusion_proof: string[] }[];
  witnesses: { name: string; kind: string; tree_size: number; evidence: string }[];
};

/** What its bundle has to be about. */
export type Subject = {
  id: string;
  environment: EnvironmentName;
  artifact: string;
  leaf: string;
  index: number;
};

/** @returns what does not hold, of what can be checked without any code of the service */
export function checkByHand(bundle: Bundle, subject: Subject, roots: Roots): string[] {
  try {
    return findProblems(bundle, subject, roots);
  } catch (error) {
    return [`${subject.id}: ${(error as Error).message}`];
  }
}

function findProblems(bundle: Bundle, subject: Subject, roots: Roots): string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, problem: string) => {
    if (!holds) problems.push(`${subject.id}: ${problem}`);
  };
  const { dsseEnvelope, verificationMaterial } = bundle.sigstore_bundle;
  const entry = verificationMaterial.tlogEntries[0];
  const body = Buffer.from(entry?.canonicalizedBody ?? '', 'base64');
  const leaf = hashLeaf(body);
  expect(leaf.toString('hex') === subject.leaf, 'the bundle has another leaf');
  expect(Number(entry?.logIndex) === subject.index, 'the bundle has another index');
  const payload = Buffer.from(dsseEnvelope.payload, 'base64');
  const statement = JSON.parse(payload.toString()) as {
    subject: { digest: { sha256: string } }[];
    predicate: { submission_id: string; environment: string };
  };
  expect(statement.subject[0]?.digest.sha256 === subject.artifact, 'the statement has another artifact');
  expect(statement.predicate.submission_id === subject.id, 'the statement is of another submission');
  expect(
    statement.predicate.environment === subject.environment,
    'the statement is of the other environment',
  );
  problems.push(...checkSignature(subject, dsseEnvelope, body, roots));
  const known = knownLog(roots, subject.environment);
  for (const { tree_size, note, inclusion_proof } of bundle.checkpoints) {
    const checkpoint = readCheckpoint(note, known);
    const path = inclusion_proof.map((hash) => Buffer.from(hash, 'base64'));
    const root = followPath(leaf, subject.index, checkpoint.size, path);
    expect(checkpoint.size === tree_size, 'a checkpoint is of another size than the bundle says');
    expect(root?.equals(checkpoint.root) === true, `the leaf is not in the tree of ${tree_size}`);
  }
  return problems;
}

type Envelope = Bundle['sigstore_bundle']['dsseEnvelope'];

/** DSSE over the payload by a key of the environment, and the same digest and signature in the log's entry. */
function checkSignature(subject: Subject, envelope: Envelope, body: Buffer, roots: Roots): string[] {
  const payload = Buffer.from(envelope.payload, 'base64');
  const { payloadType } = envelope;
  const head = `DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${payload.length} `;
  const signed = Buffer.concat([Buffer.from(head), payload]);
  const { data, signature } = JSON.parse(body.toString()).spec.hashedRekordV002;
  const keys = roots.dsse_signing_keys
    .filter(({ environment }) => environment === subject.environment)
    .map(({ public_key_pem }) => createPublicKey(public_key_pem));
  const sig = Buffer.from(envelope.signatures[0]?.sig ?? '', 'base64');
  const isSame =
    data.digest === createHash('sha256').update(signed).digest('base64') &&
    Buffer.from(signature.content, 'base64').equals(sig);
  return [
    ...(isSame ? [] : [`${subject.id}: the log's entry is of another envelope`]),
    ...(keys.some((key) => verify('sha256', signed, key, sig))
      ? []
      : [`${subject.id}: no key of the trust roots has signed the statement`]),
  ];
}

/** @returns what the service's verifier says against it */
export async function checkByVerifier(bundle: Bundle, subject: Subject, roots: Roots): Promise<string[]> {
  const verification = await verifyBundle(bundle, {
    trustRoots: roots,
    artifactSha256: subject.artifact,
    environment: subject.environment,
    now: new Date(),
  });
  return verification.verdict === 'verified' ? [] : [`${subject.id}: ${verification.summary}`];
}

/** @returns what tools that know nothing of us say against it */
export function checkByForeignTools(
  bundle: Bundle,
  { id }: Subject,
  roots: Roots,
  trustedRoot: unknown,
): string[] {
  const problems: string[] = [];
  const attempt = (what: string, run: () => unknown) => {
    try {
      run();
    } catch (error) {
      problems.push(`${id}: ${what}: ${(error as Error).message}`);
    }
  };
  for (const { name, kind, tree_size, evidence } of bundle.witnesses) {
    if (kind !== 'rfc3161') continue;
    const note = bundle.checkpoints.find((each) => each.tree_size === tree_size)?.note ?? '';
    const body = Buffer.from(note.slice(0, note.lastIndexOf('\n\n') + 1));
    const chain = roots.timestamp_authorities.find((each) => each.name === name)?.cert_chain_pem ?? [];
    attempt(`openssl on ${name}`, () => verifyWithOpenssl(body, Buffer.from(evidence, 'base64'), chain));
  }
  const keys = roots.dsse_signing_keys.map(({ public_key_pem }) => public_key_pem);
  attempt("Sigstore's verifier", () => verifyWithSigstore(bundle.sigstore_bundle, trustedRoot, keys));
  return problems;
}
