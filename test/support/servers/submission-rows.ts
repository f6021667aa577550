/** Rows of submissions, made as a handler makes them: checked, signed and hashed. */
import { randomBytes, sign } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { ulid } from 'ulid';
import { toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../src/proof/bytes/jcs.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../src/proof/statement/dsse.js';
import { rebuildLeaf } from '../../../src/proof/statement/leaf.js';
import type { StatedSubmission } from '../../../src/proof/statement/stated-submission.js';
import { metadataCommitment } from '../../../src/proof/statement/statement.js';
import type { NewSubmission } from '../../../src/server/attestations/sequence/sequence-submissions.js';
import type { PublicParts } from '../../../src/server/attestations/statements/check-statement.js';
import {
  makePrivateStatement,
  makePublicStatement,
} from '../../../src/server/attestations/statements/make-statement.js';
import type { Acknowledged } from '../judging/consistent.js';

type DsseKey = Parameters<typeof sign>[2];

/** Members of rows; `isPublic`: with a public statement of a name and two further subjects. */
export type RowOptions = Partial<NewSubmission> & { isPublic?: boolean };

/** A row of the live environment, signed with a key whose SubjectPublicKeyInfo is `spki`. */
export function makeRow(
  key: DsseKey,
  dsseKeyId: number,
  spki: Uint8Array,
  { projectId = 'prj_test', schema = 'purl', isPublic = false }: RowOptions = {},
): NewSubmission {
  const submittedAtMs = Date.now();
  const id = `sub_${ulid(submittedAtMs)}`;
  const metadata = `{"purl":"pkg:npm/${id.toLowerCase()}@1.0.0","schema":"${schema}"}`;
  const salt = randomBytes(32);
  const commitment = metadataCommitment(salt, Buffer.from(metadata));
  const artifactSha256 = toHex(randomBytes(32));
  const stated: StatedSubmission = {
    artifactSha256,
    submissionId: id,
    project: projectId,
    submittedAt: new Date(submittedAtMs).toISOString(),
    environment: 'live',
  };
  const { text, stored } = isPublic
    ? makePublicStatement({ ...stated, artifactName: `${id}.txt` }, publicParts(metadata, id))
    : makePrivateStatement(stated, { schema, commitment });
  const statement = utf8(text);
  const signature = sign('sha256', preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statement), key);
  return {
    id,
    projectId,
    apiKeyId: 'key_test',
    submittedAtMs,
    artifactSha256,
    schema,
    metadata,
    metadataErrors: null,
    build: null,
    statement: stored,
    salt: isPublic ? null : toHex(salt),
    commitment: isPublic ? null : commitment,
    dsseKeyId,
    signature: toHex(signature),
    leafHash: toHex(rebuildLeaf(statement, signature, spki).hash),
    idempotency: undefined,
    limits: { perSecond: 1_000_000, perHour: 1_000_000, perDay: 1_000_000 },
  };
}

function publicParts(metadata: string, id: string): PublicParts {
  const { schema: _, ...predicate } = JSON.parse(metadata) as JsonObject;
  const subjects = ['js', 'css'].map((ending) => ({
    name: `${id}.${ending}`,
    sha256: toHex(randomBytes(32)),
  }));
  return { predicateType: 'https://example.com/predicate', predicate: jcs(predicate), subjects };
}

/** The response that a client gets for a stored row. */
export function acknowledge(row: NewSubmission, logIndex: number): Acknowledged {
  return {
    id: row.id,
    logIndex,
    leafSha256: row.leafHash,
    artifactSha256: row.artifactSha256,
    ...(row.idempotency === undefined ? {} : { idempotencyKey: row.idempotency.key }),
  };
}
