/** Batches of a log as an export ships them: the lines of an object for each, with real signatures and a time stamp. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { ProofBundleSchema, WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import {
  assembleBundle,
  LOG_WITNESS_NAME,
  prepareBatch,
  type WitnessParts,
} from '../../../src/proof/bundle/bundle.js';
import { toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { jcsBytes } from '../../../src/proof/bytes/jcs.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import type { ManifestObject } from '../../../src/proof/export/manifest-fields.js';
import { parseCheckpoint, signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { extendTiles, readFrom } from '../../../src/proof/log/tile.js';
import { inclusionProof } from '../../../src/proof/log/tile-proof.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../src/proof/statement/dsse.js';
import { leafOf } from '../../../src/proof/statement/leaf.js';
import {
  metadataCommitment,
  type StatementFields,
  statementBytes,
  statementText,
} from '../../../src/proof/statement/statement.js';
import { requestTimestamp } from '../../../src/server/witnessing/clients/rfc3161.js';
import { restJson } from '../rest-json.js';
import { METADATA, NOW, PROJECT, type Service, SUBMITTED_AT } from '../sample.js';

/** A line of an object, parsed. */
export type Line = { submission: JsonObject; bundle: JsonObject };

/** A batch of a log, and the lines of its object. */
export type Batch = { id: string; log: string; firstIndex: number; treeSize: number; lines: Line[] };

/** How many leaves of the project a batch has, and how many of other projects before them; whose they are. */
export type BatchPlan = { own: number; others?: number; project?: string; metadata?: JsonObject };

const ULID_TAIL = 'ZZZZZZZZZZZZZZZZ';

/** Batches in a row, the first one at index 0 of the service's log. Ids are numbered across them. */
export async function makeBatches(service: Service, plans: readonly BatchPlan[]): Promise<Batch[]> {
  const leaves: Uint8Array[] = [];
  const batches: Batch[] = [];
  for (const plan of plans) {
    const firstIndex = leaves.length;
    for (let i = 0; i < (plan.others ?? 0); i++) leaves.push(leafHash(utf8(`other ${leaves.length}`)));
    const attested = Array.from({ length: plan.own }, (_, i) => attest(service, plan, leaves.length + i));
    leaves.push(...attested.map(({ leaf }) => leaf.hash));
    const id = `btc_${numbered(batches.length)}`;
    batches.push(await makeBatch(service, { id, firstIndex }, leaves, attested));
  }
  return batches;
}

type Attested = ReturnType<typeof attest>;

async function makeBatch(
  service: Service,
  batch: { id: string; firstIndex: number },
  leaves: readonly Uint8Array[],
  attested: readonly Attested[],
): Promise<Batch> {
  const size = leaves.length;
  const { root, tiles } = extendTiles({ size: 0, tiles: [] }, [...leaves]);
  const note = signCheckpoint({ origin: service.origin, size, rootHash: root }, service.log);
  const witnesses = [logWitness(note, size, batch.firstIndex), await stamp(service, note, size)];
  const prepared = prepareBatch({ batch, logKey: service.log.publicKey, notes: [note], witnesses });
  const lines = attested.map((one) => {
    const { statement, leaf, logIndex } = one;
    const bundle = assembleBundle(prepared, {
      submission: statement,
      statement: statementText(statement),
      signature: leaf.signature,
      dsseKey: service.dsse.publicKey,
      logIndex,
      inclusionProofs: [inclusionProof(logIndex, size, readFrom(tiles))],
    });
    return { submission: submissionJson(one, batch.id), bundle: restJson(ProofBundleSchema, bundle) };
  });
  return { ...batch, log: service.origin, treeSize: size, lines };
}

/** The submission as the API answers it. */
function submissionJson(
  { statement, leaf, logIndex, salt, metadata }: Attested,
  batchId: string,
): JsonObject {
  return {
    id: statement.submissionId,
    leaf_sha256: toHex(leaf.hash),
    status: 'witnessed',
    submitted_at: statement.submittedAt,
    witnessed_at: NOW.toISOString(),
    metadata,
    warnings: [],
    artifact: { sha256: statement.artifactSha256 },
    environment: statement.environment,
    log_index: logIndex,
    batch_id: batchId,
    metadata_state: 'valid',
    metadata_errors: [],
    metadata_salt: toHex(salt),
  };
}

function attest(service: Service, { project, metadata = METADATA }: BatchPlan, logIndex: number) {
  const salt = new Uint8Array(randomBytes(32));
  const statement: StatementFields = {
    artifactSha256: toHex(sha256(utf8(`artifact ${logIndex}`))),
    submissionId: `sub_${numbered(logIndex)}`,
    project: project ?? PROJECT,
    submittedAt: SUBMITTED_AT,
    environment: service.environment,
    schema: String(metadata.schema),
    commitment: metadataCommitment(salt, jcsBytes(metadata)),
  };
  const signed = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statementBytes(statement));
  const leaf = leafOf(signed, service.dsse.sign(signed), service.dsse.publicKey);
  return { salt, statement, logIndex, leaf, metadata };
}

function numbered(number: number): string {
  return `01JX${String(number).padStart(6, '0')}${ULID_TAIL}`;
}

function logWitness(note: string, treeSize: number, firstIndex: number): WitnessParts {
  return {
    name: LOG_WITNESS_NAME,
    kind: WitnessKind.TRANSPARENCY_LOG,
    treeSize,
    evidence: utf8(note),
    detail: { log_index: firstIndex },
    landedAt: NOW,
  };
}

async function stamp({ authority }: Service, note: string, treeSize: number): Promise<WitnessParts> {
  const question = {
    message: utf8(parseCheckpoint(note).note.text),
    nonce: new Uint8Array(randomBytes(16)),
    chains: [authority.certChain],
  };
  const { evidence, detail } = await requestTimestamp(
    { send: (request) => authority.respond(request) },
    question,
    new AbortController().signal,
  );
  return { name: 'tsa', kind: WitnessKind.RFC3161, treeSize, evidence, detail, landedAt: NOW };
}

/** The bytes of the object with these lines. */
export function objectBytes(lines: readonly unknown[]): Uint8Array {
  return utf8(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

/** What a manifest says of a batch's object with these bytes. */
export function describeObject(
  { id, log, firstIndex, treeSize, lines }: Batch,
  bytes: Uint8Array,
  ending = '.jsonl',
): ManifestObject {
  return {
    name: `${id}${ending}`,
    sha256: toHex(sha256(bytes)),
    batchId: id,
    log,
    firstIndex,
    treeSize,
    submissions: lines.length,
    bytes: bytes.length,
    revision: 1,
  };
}
