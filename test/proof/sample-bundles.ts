/** Bundles out of a small log, for the tests of bundles and their verification. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ProofBundle } from '../../gen/attestation/v1/bundle_pb.js';
import { assembleBundle, prepareBatch } from '../../src/proof/bundle/bundle.js';
import type { SigstoreBundle } from '../../src/proof/bundle/sigstore-bundle.js';
import { fromUtf8, toBase64, toHex, utf8 } from '../../src/proof/bytes/encoding.js';
import { jcsBytes } from '../../src/proof/bytes/jcs.js';
import { sha256 } from '../../src/proof/bytes/primitives.js';
import { signLogCheckpoint } from '../../src/proof/log/log-signature.js';
import { leafHash } from '../../src/proof/log/merkle.js';
import { encodeNote, noteKey, parseNote } from '../../src/proof/log/note.js';
import { extendTiles, readFrom } from '../../src/proof/log/tile.js';
import { inclusionProof } from '../../src/proof/log/tile-proof.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../src/proof/statement/dsse.js';
import { leafOf } from '../../src/proof/statement/leaf.js';
import {
  metadataCommitment,
  type StatementFields,
  statementText,
} from '../../src/proof/statement/statement.js';
import {
  ARTIFACT,
  BATCH,
  LATER_SIZE,
  LOG_INDEX,
  METADATA,
  PROJECT,
  type Service,
  SUBMISSION_ID,
  SUBMITTED_AT,
} from './sample.js';
import { ask, type SampleWitness } from './sample-witnesses.js';

/** One attested submission with what opens its commitment. */
export type Sample = { service: Service; statement: StatementFields; salt: Uint8Array; bundle: ProofBundle };

/** What is attested, when by the service's clock, and where its leaf stands in the log. */
export type Subject = {
  artifact: Uint8Array;
  submissionId: string;
  project: string;
  logIndex: number;
  submittedAt?: string;
  metadata?: JsonObject & { schema: string };
};

const SUBJECT: Subject = {
  artifact: ARTIFACT,
  submissionId: SUBMISSION_ID,
  project: PROJECT,
  logIndex: LOG_INDEX,
};

/** A bundle about the artifact. */
export async function makeSample(
  service: Service,
  witnesses: readonly SampleWitness[] = ['log', 'tsa', 'cosigner'],
  subject: Partial<Subject> = {},
): Promise<Sample> {
  const [sample] = await makeSamples(service, [{ ...SUBJECT, ...subject }], witnesses);
  return sample!;
}

/** Bundles out of one batch of one log. */
export async function makeSamples(
  service: Service,
  subjects: readonly Subject[],
  witnesses: readonly SampleWitness[] = ['log', 'tsa', 'cosigner'],
): Promise<Sample[]> {
  const attested = subjects.map((subject) => attest(service, subject));
  const leaves = Array.from({ length: LATER_SIZE }, (_, i) => leafHash(utf8(`leaf ${i}`)));
  for (const { record, logIndex } of attested) leaves[logIndex] = leafHash(record);
  const sizes = [BATCH.treeSize, ...(witnesses.includes('cosigner') ? [LATER_SIZE] : [])];
  const signCheckpointOf = async (size: number) => {
    const { root, tiles } = extendTiles({ size: 0, tiles: [] }, leaves.slice(0, size));
    const note = await signLogCheckpoint({ origin: service.origin, size, rootHash: root }, service.log);
    return {
      note,
      signed: withLines(note, service),
      prove: (index: number) => inclusionProof(index, size, readFrom(tiles)),
    };
  };
  const checkpoints = await Promise.all(sizes.map(signCheckpointOf));
  const notes = checkpoints.map(({ note }) => note);
  const signed = checkpoints.map((checkpoint) => checkpoint.signed);
  const said = await Promise.all(witnesses.map((witness) => ask(witness, service, signed)));
  const batch = prepareBatch({ batch: BATCH, logKey: service.log.publicKey, notes, witnesses: said });
  return attested.map(({ statement, salt, leaf, logIndex, payload, record }) => {
    const bundle = assembleBundle(batch, {
      submission: statement,
      statement: statementText(statement),
      signature: leaf.signature,
      dsseKey: service.dsse.publicKey,
      logIndex,
      inclusionProofs: checkpoints.map(({ prove }) => prove(logIndex)),
    });
    if (service.form !== undefined) setForm(bundle, service.form, { payload, record, signed });
    return { service, statement, salt, bundle };
  });
}

function withLines(note: string, { form, log, origin }: Service): string {
  if (form?.lines === undefined) return note;
  const text = `${parseNote(note).text}${form.lines}`;
  const { name, keyId } = noteKey(origin, log.publicKey);
  return encodeNote({ text, signatures: [{ name, keyId, signature: log.sign(utf8(text)) }] });
}

/** Puts what was signed and logged into a bundle, in place of what is known of it today. */
function setForm(
  { sigstoreBundle, checkpoints, submission }: ProofBundle,
  { payloadType, lines }: NonNullable<Service['form']>,
  { payload, record, signed }: { payload: Uint8Array; record: Uint8Array; signed: readonly string[] },
): void {
  const { dsseEnvelope, verificationMaterial } = sigstoreBundle as unknown as SigstoreBundle;
  const [entry] = verificationMaterial.tlogEntries;
  const { kind, apiVersion } = JSON.parse(fromUtf8(record));
  Object.assign(dsseEnvelope, { payload: toBase64(payload), ...(payloadType && { payloadType }) });
  Object.assign(entry!, { canonicalizedBody: toBase64(record), kindVersion: { kind, version: apiVersion } });
  Object.assign(submission!, { leafSha256: toHex(leafHash(record)) });
  if (lines === undefined) return;
  Object.assign(entry!.inclusionProof.checkpoint, { envelope: signed[0] });
  for (const [i, note] of signed.entries()) Object.assign(checkpoints[i]!, { note });
}

function attest(service: Service, subject: Subject) {
  const { artifact, submissionId, project, logIndex, submittedAt, metadata = METADATA } = subject;
  const salt = new Uint8Array(randomBytes(32));
  const statement: StatementFields = {
    artifactSha256: toHex(sha256(artifact)),
    submissionId,
    project,
    submittedAt: submittedAt ?? SUBMITTED_AT,
    environment: service.environment,
    schema: metadata.schema,
    commitment: metadataCommitment(salt, jcsBytes(metadata)),
  };
  const { form = {}, dsse } = service;
  const payload = utf8(form.payload?.(statementText(statement)) ?? statementText(statement));
  const signed = preAuthEncoding(form.payloadType ?? IN_TOTO_PAYLOAD_TYPE, payload);
  const leaf = leafOf(signed, dsse.sign(signed), dsse.publicKey);
  const record = form.record ? utf8(form.record(fromUtf8(leaf.record))) : leaf.record;
  return { salt, statement, logIndex, leaf, payload, record };
}
