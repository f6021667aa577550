/** A manifest's fields, and manifests signed by a service of sample.ts. */
import { manifestEnvelope, manifestStatement } from '../../../src/proof/export/manifest.js';
import type { ManifestFields, ManifestObject } from '../../../src/proof/export/manifest-fields.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../src/proof/statement/dsse.js';
import { PROJECT, type Service } from '../sample.js';

export const EXPORT_ID = 'exp_01JX5WQ1ZZZZZZZZZZZZZZZZZZ';
const LOG = 'live.log.example';

/** The fields of a manifest with two objects. */
export function manifestFields(change: Partial<ManifestFields> = {}): ManifestFields {
  return {
    exportId: EXPORT_ID,
    project: PROJECT,
    environment: 'live',
    day: '2025-06-07',
    filterSchema: null,
    revision: 3,
    isComplete: true,
    objects: [manifestObject('4'), manifestObject('5', { firstIndex: 1000, treeSize: 1300, submissions: 2 })],
    logs: [{ origin: LOG, start: 0, from: 600, to: 1400 }],
    ...change,
  };
}

/** An object of a manifest; `digit` sets the ids of several apart. */
export function manifestObject(digit: string, change: Partial<ManifestObject> = {}): ManifestObject {
  const batchId = `btc_01JX5WQ${digit}ZZZZZZZZZZZZZZZZZZ`;
  return {
    name: `${batchId}.jsonl`,
    sha256: digit.repeat(64),
    batchId,
    log: LOG,
    firstIndex: 650,
    treeSize: 1000,
    submissions: 1,
    bytes: 7421,
    revision: 1,
    ...change,
  };
}

/** The bytes of a manifest signed by the service. */
export function signManifest(service: Service, fields: ManifestFields): Uint8Array {
  const statement = manifestStatement(fields);
  return manifestEnvelope(statement, service.dsse.sign(preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statement)));
}
