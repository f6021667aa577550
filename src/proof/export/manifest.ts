/**
 * The manifest of a day of an export: a DSSE envelope over an in-toto Statement v1 whose subjects are the day's objects.
 * It has the ranges of the logs that the export covers, so missing objects are detected.
 */
import { utf8 } from '../bytes/encoding.js';
import { jcsBytes } from '../bytes/jcs.js';
import { dsseEnvelope } from '../statement/dsse.js';
import { STATEMENT_TYPE } from '../statement/stated-submission.js';
import { assertConsistent, type ManifestFields, type ManifestObject } from './manifest-fields.js';

/** The manifest's name in its day's folder. */
export const MANIFEST_NAME = 'manifest.json';

export const MANIFEST_PREDICATE_TYPE = 'urn:attestation-service:export-manifest:v1';

/**
 * The statement's bytes, its JCS: the payload to sign, with `preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, payload)`. Throws
 * FormatError if the fields contradict each other or are not of the documented form.
 */
export function manifestStatement(fields: ManifestFields): Uint8Array {
  assertConsistent(fields);
  const objects = [...fields.objects].sort(byLogAndIndex);
  const logs = [...fields.logs].sort((a, b) => compareText(a.origin, b.origin));
  return jcsBytes({
    _type: STATEMENT_TYPE,
    predicate: {
      day: fields.day,
      environment: fields.environment,
      export: fields.exportId,
      filter_schema: fields.filterSchema,
      is_complete: fields.isComplete,
      logs: logs.map(({ origin, start, from, to }) => ({ from, origin, start, to })),
      objects: objects.map(predicateObject),
      project: fields.project,
      revision: fields.revision,
    },
    predicateType: MANIFEST_PREDICATE_TYPE,
    subject: objects.map(({ name, sha256 }) => ({ digest: { sha256 }, name })),
  });
}

/**
 * The manifest's bytes: the envelope of a statement with its one signature (ECDSA P-256 with SHA-256, DER) by the
 * environment's DSSE key. Another signature of the same statement gives other bytes.
 */
export function manifestEnvelope(statement: Uint8Array, signature: Uint8Array): Uint8Array {
  return utf8(JSON.stringify(dsseEnvelope(statement, signature)));
}

/** The same as it was written before signatures had an empty `keyid`. */
export function earlierManifestEnvelope(statement: Uint8Array, signature: Uint8Array): Uint8Array {
  const envelope = dsseEnvelope(statement, signature);
  return utf8(JSON.stringify({ ...envelope, signatures: envelope.signatures.map(({ sig }) => ({ sig })) }));
}

function predicateObject(object: ManifestObject): object {
  return {
    batch_id: object.batchId,
    bytes: object.bytes,
    first_index: object.firstIndex,
    log: object.log,
    name: object.name,
    revision: object.revision,
    submissions: object.submissions,
    tree_size: object.treeSize,
  };
}

function byLogAndIndex(a: ManifestObject, b: ManifestObject): number {
  return compareText(a.log, b.log) || a.firstIndex - b.firstIndex;
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
