/** The size of the answer to a batch: what it may have more than was sent. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService, ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../../support/app.js';
import type { Outcome } from '../../../support/calling/surfaces.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { creation } from '../../rpc/samples.js';

const { batchCreateAttestations, updateAttestation } = AttestationService.method;
/** What gRPC clients take by default. */
const CLIENT_BYTES = 4 * 1024 * 1024;
const PROBLEMS = 40;
const LARGE = { schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0', note: 'x'.repeat(60_000) };

const app = await startApp(t);
const surfaces = app.surfaces();
t.teardown(() => {
  for (const surface of surfaces) surface.close();
});
const owner = await newKey(app);
const [first] = surfaces;
if (first === undefined) throw new Error('there is no surface');

type Result = {
  outcome: string;
  submission?: JsonObject;
  error?: { code: string; message: string; details: { errors: JsonObject[]; total: number } };
  retryAfter?: number;
};

const digest = () => randomBytes(32).toString('hex');
const newKeyText = () => randomBytes(8).toString('hex');
const resultsOf = ({ response }: Outcome) => response.results as unknown as Result[];
const sizeOf = ({ response }: Outcome) => Buffer.byteLength(JSON.stringify(response));

/** Provenance in which so many dependencies are no objects. */
const wrong = (problems: number): JsonObject => ({
  schema: 'slsa.provenance.v1',
  buildDefinition: { resolvedDependencies: Array.from({ length: problems }, (_, i) => i) },
});

/** Submits an item under a key and corrects the submission to large metadata. @returns the item */
async function largeReplay() {
  const item = {
    ...creation(digest()),
    metadata: { schema: 'purl' },
    validation: ValidationMode.LENIENT,
    idempotencyKey: newKeyText(),
  };
  const created = await first!.call(batchCreateAttestations, { items: [item] } as never, owner.key);
  const id = String(resultsOf(created)[0]?.submission?.id);
  const corrected = await first!.call(updateAttestation, { id, metadata: LARGE }, owner.key);
  t.equal(corrected.code, 'ok');
  return item;
}

for (const validation of [ValidationMode.STRICT, ValidationMode.LENIENT]) {
  const mode = ValidationMode[validation].toLowerCase();
  t.test(`of many problems of ${mode} items the answer has as many as there is room for`, async (t) => {
    for (const surface of surfaces) {
      const items = Array.from({ length: 1000 }, () => ({
        ...creation(digest()),
        metadata: wrong(PROBLEMS),
        validation,
      }));
      const answer = await surface.call(batchCreateAttestations, { items } as never, owner.key);
      t.equal(answer.code, 'ok', surface.name);
      t.ok(sizeOf(answer) < CLIENT_BYTES, `${surface.name}: ${sizeOf(answer)} bytes`);
      const results = resultsOf(answer);
      const [one, last] = [results[0], results[999]];
      if (validation === ValidationMode.STRICT) {
        t.ok((one?.error?.details.errors.length ?? 0) > 1, surface.name);
        t.equal(last?.error?.details.errors.length, 1, surface.name);
        t.ok((last?.error?.details.total ?? 0) > 1, surface.name);
      } else {
        const known = one?.submission?.metadataErrors as JsonObject[];
        t.ok(known.length > 1, surface.name);
        t.match(last?.submission, { metadataState: one?.submission?.metadataState }, surface.name);
        t.same(last?.submission?.metadataErrors ?? [], [], surface.name);
      }
    }
  });
}

t.test('replays of what has been corrected to more are answered as far as there is room', async (t) => {
  const item = await largeReplay();
  for (const surface of surfaces) {
    const items = [
      ...Array.from({ length: 20 }, () => item),
      { ...creation(digest()), idempotencyKey: newKeyText() },
    ];
    const answer = await surface.call(batchCreateAttestations, { items } as never, owner.key);
    const results = resultsOf(answer);
    t.same(
      results.slice(0, 3).map(({ outcome, error }) => error?.code ?? outcome),
      ['ITEM_OUTCOME_REPLAYED', 'ITEM_OUTCOME_REPLAYED', 'service.unavailable'],
      surface.name,
    );
    t.match(results[19], { error: { message: /another batch/ }, retryAfter: 1 }, surface.name);
    t.equal(results[20]?.outcome, 'ITEM_OUTCOME_CREATED', 'others are not affected');
    const again = await surface.call(batchCreateAttestations, { items: [item] } as never, owner.key);
    t.match(resultsOf(again)[0]?.submission, { metadata: { note: LARGE.note } }, surface.name);
  }
});
