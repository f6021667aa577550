/** A small log with real keys, and bundles out of it, for the tests of bundles and their verification. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type ProofBundle, WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { type TrustRoots, TrustRootsSchema } from '../../gen/attestation/v1/service_pb.js';
import { toPem } from '../../src/proof/asn1/pem.js';
import {
  assembleBundle,
  LOG_WITNESS_NAME,
  prepareBatch,
  type WitnessParts,
} from '../../src/proof/bundle/bundle.js';
import type { SigstoreBundle } from '../../src/proof/bundle/sigstore-bundle.js';
import { fromUtf8, toBase64, toHex, utf8 } from '../../src/proof/bytes/encoding.js';
import { jcsBytes } from '../../src/proof/bytes/jcs.js';
import { ed25519Spki, sha256 } from '../../src/proof/bytes/primitives.js';
import { parseCheckpoint } from '../../src/proof/log/checkpoint.js';
import { cosign } from '../../src/proof/log/cosignature.js';
import { signLogCheckpoint } from '../../src/proof/log/log-signature.js';
import { leafHash } from '../../src/proof/log/merkle.js';
import {
  COSIGNATURE_V1_KEY,
  encodeNote,
  encodeSignatureLine,
  encodeVerifierKey,
  ML_DSA_44_NOTE_KEY,
  noteKey,
  parseNote,
} from '../../src/proof/log/note.js';
import { extendTiles, readFrom } from '../../src/proof/log/tile.js';
import { inclusionProof } from '../../src/proof/log/tile-proof.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../src/proof/statement/dsse.js';
import { leafOf } from '../../src/proof/statement/leaf.js';
import {
  metadataCommitment,
  type StatementFields,
  statementText,
} from '../../src/proof/statement/statement.js';
import type { MlDsaKey } from '../../src/server/keys/ml-dsa-key.js';
import {
  openTimestampAuthority,
  type TimestampAuthority,
} from '../../src/server/timestamp-authority/timestamp-authority.js';
import { requestTimestamp } from '../../src/server/witnessing/clients/rfc3161.js';
import { bitcoinEvidence } from './opentimestamps/bitcoin-evidence.js';

export const NOW = new Date('2025-06-07T12:00:00.000Z');
export const SUBMITTED_AT = '2025-06-07T11:59:59.123Z';
export const STAMPED_AT = new Date('2025-06-07T12:00:01.000Z');
/** What a stamp of that time proves: the authority has whole seconds, and says so. */
export const STAMP_PROVES = new Date('2025-06-07T12:00:02.000Z');
const COSIGNED_AT = new Date('2025-06-07T12:00:03.000Z');
/** A cosignature's time has whole seconds. */
export const COSIGNATURE_PROVES = new Date('2025-06-07T12:00:04.000Z');
export const ARTIFACT = utf8('the artifact that was tested');
export const METADATA = { schema: 'purl', purl: 'pkg:npm/tap@21.8.0' };
export const PROJECT = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZZ';
export const SUBMISSION_ID = 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ';

/** Where the leaf stands, where its batch ends, and a later checkpoint that a slower witness vouches for. */
export const LOG_INDEX = 700;
export const BATCH = { id: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ', firstIndex: 650, treeSize: 1000 };
export const LATER_SIZE = 1300;

export function ed25519() {
  const { privateKey } = generateKeyPairSync('ed25519');
  return {
    publicKey: rawPublicKey(privateKey),
    sign: (data: Uint8Array) => plainSign(null, data, privateKey),
  };
}

function rawPublicKey(privateKey: KeyObject): Uint8Array {
  return new Uint8Array(Buffer.from(privateKey.export({ format: 'jwk' }).x!, 'base64url'));
}

function plainSign(algorithm: string | null, data: Uint8Array, key: KeyObject): Uint8Array {
  return new Uint8Array(sign(algorithm, data, key));
}

/** A service's keys. */
export type Service = {
  origin: string;
  environment: 'live' | 'test';
  dsse: { publicKey: Uint8Array; sign: (data: Uint8Array) => Uint8Array };
  log: ReturnType<typeof ed25519> & { mlDsa?: MlDsaKey };
  /** With a second key it signs twice. */
  cosigner: ReturnType<typeof ed25519> & { name: string; mlDsa?: MlDsaKey };
  authority: TimestampAuthority;
  /** How what it signs and logs differs from what is known today. */
  form?: {
    payloadType?: string;
    payload?: (statement: string) => string;
    record?: (record: string) => string;
    /** Lines after the root of a checkpoint. */
    lines?: string;
  };
};

export async function makeService(dir: string, environment: 'live' | 'test' = 'live'): Promise<Service> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    origin: `${environment}.log.example`,
    environment,
    dsse: {
      publicKey: new Uint8Array(publicKey.export({ type: 'spki', format: 'der' })),
      sign: (data) => plainSign('sha256', data, privateKey),
    },
    log: ed25519(),
    cosigner: { name: 'witness.example/w1', ...ed25519() },
    authority: await openTimestampAuthority({ dir, clock: () => STAMPED_AT, randomBytes }),
  };
}

/** One attested submission with what opens its commitment. */
export type Sample = { service: Service; statement: StatementFields; salt: Uint8Array; bundle: ProofBundle };

/** Which witnesses the bundle has: the log and the authority are on the batch's checkpoint, the cosigner on the later one. */
export type SampleWitness = 'log' | 'tsa' | 'cosigner' | 'calendar';

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

async function ask(
  witness: SampleWitness,
  service: Service,
  notes: readonly string[],
): Promise<WitnessParts> {
  const [first = '', later = ''] = notes;
  const body = parseNote(first).text;
  const base = { treeSize: BATCH.treeSize, detail: {}, landedAt: NOW };
  switch (witness) {
    case 'log':
      return {
        ...base,
        name: LOG_WITNESS_NAME,
        kind: WitnessKind.TRANSPARENCY_LOG,
        evidence: utf8(first),
        detail: { log_index: BATCH.firstIndex },
      };
    case 'calendar': {
      const { evidence, detail } = bitcoinEvidence(first);
      return { ...base, name: 'calendar', kind: WitnessKind.OPENTIMESTAMPS, evidence, detail };
    }
    case 'cosigner': {
      const { name, mlDsa } = service.cosigner;
      const cosigners = [service.cosigner, ...(mlDsa ? [{ name, type: ML_DSA_44_NOTE_KEY, ...mlDsa }] : [])];
      const lines = cosigners.map((cosigner) =>
        encodeSignatureLine(cosign(parseCheckpoint(later).note.text, COSIGNED_AT.getTime() / 1000, cosigner)),
      );
      return {
        ...base,
        name: 'w1',
        kind: WitnessKind.LOG_WITNESS,
        treeSize: LATER_SIZE,
        evidence: utf8(lines.join('')),
      };
    }
    case 'tsa': {
      const question = {
        message: utf8(body),
        nonce: new Uint8Array(randomBytes(16)),
        chains: [service.authority.certChain],
      };
      const { evidence, detail } = await requestTimestamp(
        { send: (request) => service.authority.respond(request) },
        question,
        new AbortController().signal,
      );
      return { ...base, name: 'tsa', kind: WitnessKind.RFC3161, evidence, detail };
    }
  }
}

/** The service's trust roots; the authority is required. */
export function makeTrustRoots(
  service: Service,
  change: MessageInitShape<typeof TrustRootsSchema> = {},
): TrustRoots {
  const environment = service.environment === 'live' ? Environment.LIVE : Environment.TEST;
  const { name, mlDsa } = service.cosigner;
  const validFrom = timestampFromDate(new Date('2025-01-01T00:00:00Z'));
  return create(TrustRootsSchema, {
    timestampAuthorities: [
      { name: 'tsa', operator: 'self', certChainPem: service.authority.certChainPem, validFrom },
    ],
    transparencyLogs: [
      {
        environment,
        origin: service.origin,
        verifierKey: encodeVerifierKey(noteKey(service.origin, service.log.publicKey)),
        mlDsaVerifierKey: service.log.mlDsa
          ? encodeVerifierKey(noteKey(service.origin, service.log.mlDsa.publicKey, ML_DSA_44_NOTE_KEY))
          : '',
        publicKeyPem: toPem('PUBLIC KEY', ed25519Spki(service.log.publicKey)),
        url: `https://${service.origin}`,
      },
    ],
    logWitnesses: [
      {
        name: 'w1',
        verifierKey: encodeVerifierKey(
          noteKey(service.cosigner.name, service.cosigner.publicKey, COSIGNATURE_V1_KEY),
        ),
      },
      ...(mlDsa
        ? [
            {
              name: 'w1',
              verifierKey: encodeVerifierKey(noteKey(name, mlDsa.publicKey, ML_DSA_44_NOTE_KEY)),
            },
          ]
        : []),
    ],
    opentimestampsWitnesses: [{ name: 'calendar', calendars: ['https://calendar.example'], validFrom }],
    dsseSigningKeys: [
      {
        environment,
        fingerprintSha256: toHex(sha256(service.dsse.publicKey)),
        algorithm: 'ecdsa-p256-sha256',
        publicKeyPem: toPem('PUBLIC KEY', service.dsse.publicKey),
        validFrom,
      },
    ],
    policies: [{ environment, version: 1, required: ['tsa'], deadline: { seconds: 3600n } }],
    ...change,
  });
}
