/** Provenance of large producers that departs from its schema is recorded as valid, with a warning for each way. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AttestationService, ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../../support/app.js';
import type { Outcome } from '../../../support/calling/surfaces.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { creation } from '../../rpc/samples.js';

const { batchCreateAttestations, createAttestation, deleteAttestation, getAttestation } =
  AttestationService.method;
const CLIENT_BYTES = 4 * 1024 * 1024;
const SHA256 = '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef';

const app = await startApp(t);
const surfaces = app.surfaces();
t.teardown(() => {
  for (const surface of surfaces) surface.close();
});
const owner = await newKey(app);

/** What Google Cloud Build and BuildKit write, in one. */
const METADATA = {
  schema: 'slsa.provenance.v1',
  buildDefinition: {
    buildType: 'https://build.example/types/v1',
    externalParameters: {},
    resolvedDependencies: [{ uri: `registry.example/docker@sha256:${SHA256}`, digest: { sha256: SHA256 } }],
  },
  runDetails: { builder: { id: '' }, byproducts: [{}] },
};
const EXPECTED = [
  { path: '/runDetails/builder/id', message: 'is empty' },
  { path: '/buildDefinition/resolvedDependencies/0/uri', message: 'must be an absolute URI' },
  { path: '/runDetails/byproducts/0', message: 'must have uri or digest or content' },
];

const digest = () => randomBytes(32).toString('hex');
const newKeyText = () => randomBytes(8).toString('hex');

/** Each warning's code and places. Its message names the schema and who writes so. */
function warningsOf(t: Test, submission: JsonObject | undefined) {
  const warnings = (submission?.warnings ?? []) as { code: string; message: string; details: JsonObject }[];
  return warnings.map(({ code, message, details: { schema, errors } }) => {
    t.match(message, /^the metadata is accepted, though it departs from its schema slsa\.provenance\.v1: /);
    t.match(message, /BuildKit|Google Cloud Build/);
    t.equal(schema, METADATA.schema);
    return { code, errors };
  });
}
const WARNINGS = EXPECTED.map((error) => ({ code: 'submission.invalid_metadata', errors: [error] }));

t.test('a creation is answered with the warnings on every surface, and stores what was sent', async (t) => {
  for (const { name, call } of surfaces) {
    for (const validation of [ValidationMode.STRICT, ValidationMode.LENIENT]) {
      const request = { ...creation(digest(), METADATA), validation };
      const { code, response } = await call(createAttestation, request, owner.key);
      t.equal(code, 'ok', name);
      t.strictSame(warningsOf(t, response), WARNINGS, name);
      t.match(response, { metadataState: 'METADATA_STATE_VALID', metadata: METADATA }, name);
      t.notOk((response.metadataErrors as unknown[] | undefined)?.length, name);
      const read = await call(getAttestation, { id: String(response.id) }, owner.key);
      t.match(read.response, { metadataState: 'METADATA_STATE_VALID', metadata: METADATA }, name);
      t.notOk((read.response.warnings as unknown[] | undefined)?.length, `${name}: on creation only`);
    }
  }
});

type Result = { outcome: string; submission?: JsonObject; error?: JsonObject };
const resultsOf = ({ response }: Outcome) => response.results as unknown as Result[];

t.test('a replay has the same warnings, also beyond the rate limit, and none once redacted', async (t) => {
  const few = await newKey(app, { limits: { perDay: surfaces.length } });
  const made: { name: string; id: string; repeat: () => Promise<Outcome> }[] = [];
  for (const { name, call } of surfaces) {
    const request = creation(digest(), METADATA);
    const headers = { 'idempotency-key': newKeyText() };
    const repeat = () => call(createAttestation, request, few.key, headers);
    const { response } = await repeat();
    t.strictSame(warningsOf(t, response), WARNINGS, name);
    made.push({ name, id: String(response.id), repeat });
  }
  for (const { name, id, repeat } of made) {
    const { code, response } = await repeat();
    t.match({ code, id: response.id }, { code: 'ok', id }, name);
    t.strictSame(warningsOf(t, response), WARNINGS, name);
  }
  for (const { name, id, repeat } of made) {
    await surfaces[0]?.call(deleteAttestation, { id }, few.key);
    const { response } = await repeat();
    t.match(response, { metadataState: 'METADATA_STATE_REDACTED' }, name);
    t.strictSame(warningsOf(t, response), [], name);
  }
});

t.test('items of a batch have the warnings, also when they are replayed or repeated', async (t) => {
  for (const surface of surfaces) {
    const item = { ...creation(digest(), METADATA), idempotencyKey: newKeyText() };
    const request = { items: [item, creation(digest()), item] } as never;
    const first = await surface.call(batchCreateAttestations, request, owner.key);
    const again = await surface.call(batchCreateAttestations, request, owner.key);
    for (const [answer, outcome] of [
      [first, 'ITEM_OUTCOME_CREATED'],
      [again, 'ITEM_OUTCOME_REPLAYED'],
    ] as const) {
      const [one, other, repeated] = resultsOf(answer);
      t.equal(one?.outcome, outcome, surface.name);
      t.match(one?.submission, { metadataState: 'METADATA_STATE_VALID' });
      t.strictSame(warningsOf(t, one?.submission), WARNINGS, surface.name);
      t.strictSame(warningsOf(t, other?.submission), [], surface.name);
      t.equal(repeated?.outcome, 'ITEM_OUTCOME_REPLAYED', surface.name);
      t.strictSame(warningsOf(t, repeated?.submission), WARNINGS, surface.name);
    }
  }
});

t.test('a thousand items each have their warnings, unless the answer would become too large', async (t) => {
  const many = { ...METADATA, runDetails: { builder: { id: '' }, byproducts: Array(500).fill({}) } };
  // One of text and one of binary messages.
  for (const surface of surfaces.filter(({ name }) => name === 'REST' || name === 'gRPC')) {
    for (const [metadata, hasRoom] of [
      [METADATA, true],
      [many, false],
    ] as const) {
      const items = Array.from({ length: 1000 }, () => creation(digest(), metadata));
      const answer = await surface.call(batchCreateAttestations, { items } as never, owner.key);
      t.equal(answer.code, 'ok', surface.name);
      t.ok(Buffer.byteLength(JSON.stringify(answer.response)) < CLIENT_BYTES, surface.name);
      const results = resultsOf(answer);
      const warned = results.filter(({ submission }) => (submission?.warnings as unknown[])?.length > 0);
      t.equal(warned.length === results.length, hasRoom, `${surface.name}: ${warned.length}`);
      t.ok(warned.length > 0, surface.name);
    }
  }
});

t.test('what departs is recorded beside what is invalid, and does not make it so', async (t) => {
  const metadata = { ...METADATA, buildDefinition: { ...METADATA.buildDefinition, buildType: '' } };
  for (const { name, call } of surfaces) {
    const strict = await call(createAttestation, creation(digest(), metadata), owner.key);
    const problem = { path: '/buildDefinition/buildType', message: 'is empty' };
    t.match(strict, { code: 'submission.invalid_metadata', details: { total: 1, errors: [problem] } }, name);
    const request = { ...creation(digest(), metadata), validation: ValidationMode.LENIENT };
    const { response } = await call(createAttestation, request, owner.key);
    t.match(response, { metadataState: 'METADATA_STATE_INVALID', metadataErrors: [problem] }, name);
    t.equal((response.warnings as unknown[]).length, 1 + EXPECTED.length, name);
  }
});
