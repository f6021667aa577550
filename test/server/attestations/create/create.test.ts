import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService, ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import type { RestAnswer } from '../../../support/calling/rpc-clients.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks, CANARY } from '../../../support/judging/recorder.js';
import { creation, METADATA } from '../../rpc/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const owner = await newKey(app);
const { createAttestation } = AttestationService.method;
const SHA256 = 'Ab'.repeat(32);
const LOWER = SHA256.toLowerCase();
const KNOWN = [
  'evaluation.v1',
  'intoto.test_result.v0.1',
  'purl',
  'scitt.statement.v1',
  'slsa.provenance.v1',
  'ui_snapshot.v1',
];
/** Fails its schema in two places. */
const INVALID = { schema: 'intoto.test_result.v0.1', result: CANARY, configuration: [{}], note: CANARY };
const WRONG_AT = ['/configuration/0', '/result'];

function post(body: JsonObject | string, apiKey = owner.key): Promise<RestAnswer> {
  return app.rest('/v1/attestations', { method: 'POST', apiKey, body });
}

/** The pointers of all problems, sorted. */
function pathsOf(details: unknown): string[] {
  const { errors } = details as { errors: { path: string }[] };
  return errors.map(({ path }) => path).sort();
}

async function countStored(): Promise<number> {
  const [row] = await app.pool<{ n: number }[]>`SELECT count(*)::int AS n FROM submission`;
  return row?.n ?? 0;
}

t.test('a creation is answered with 201 and the submission, every member of it', async (t) => {
  const { status, headers, json } = await post(creation(SHA256));
  t.equal(status, 201);
  t.equal(headers['content-type'], 'application/json');
  const { id, leaf_sha256, submitted_at, log_index, metadata_salt, ...rest } = json;
  t.match(id, /^sub_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.match(leaf_sha256, /^[0-9a-f]{64}$/);
  t.match(metadata_salt, /^[0-9a-f]{64}$/);
  t.match(submitted_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.equal(log_index, 0, 'the first leaf of its log');
  t.same(rest, {
    status: 'queued',
    metadata: METADATA,
    warnings: [],
    artifact: { sha256: LOWER },
    environment: 'live',
    metadata_state: 'valid',
    metadata_errors: [],
  });
  t.same(Object.keys(json).slice(0, 4), ['id', 'leaf_sha256', 'status', 'submitted_at']);
});

t.test(
  'every surface makes a submission of the same form, at the next index, with its own id and leaf',
  async (t) => {
    const made: JsonObject[] = [];
    for (const { name, call } of surfaces) {
      const { code, response } = await call(createAttestation, creation(SHA256), owner.key);
      t.equal(code, 'ok', name);
      const { id, leafSha256, submittedAt, logIndex, metadataSalt, ...rest } = response;
      made.push({ id, leafSha256, metadataSalt, logIndex: Number(logIndex) } as JsonObject);
      t.ok(submittedAt);
      t.same(rest, {
        status: 'SUBMISSION_STATUS_QUEUED',
        metadata: METADATA,
        artifact: { sha256: LOWER },
        environment: 'ENVIRONMENT_LIVE',
        metadataState: 'METADATA_STATE_VALID',
      });
    }
    for (const member of ['id', 'leafSha256', 'metadataSalt']) {
      t.equal(new Set(made.map((one) => one[member])).size, surfaces.length, `no ${member} twice`);
    }
    const [{ logIndex: first } = {}] = made;
    t.same(
      made.map(({ logIndex }) => logIndex),
      made.map((_, i) => Number(first) + i),
    );
  },
);

t.test('a test key writes to the log of the test environment', async (t) => {
  const { key } = await newKey(app, { environment: Environment.TEST });
  const { json } = await post(creation(SHA256), key);
  t.match(json, { environment: 'test', log_index: 0 });
});

t.test('metadata is kept as its canonical form: numbers as doubles, members sorted', async (t) => {
  const { status, body } = await post(
    `{"artifact":{"sha256":"${SHA256}"},"validation":"lenient","metadata":{` +
      `"z":1.0,"schema":"purl","a":[1e2,1e-400,-0.0,0.1e1],"purl":"${METADATA.purl}",` +
      `"\\u00e9":"\\u0041\\/","big":12345678901234567000,"__proto__":{"a":1}}}`.replace('1E400e0', '1e-400'),
  );
  t.equal(status, 201);
  const kept =
    `{"__proto__":{"a":1},"a":[100,0,0,1],"big":12345678901234567000,"purl":"${METADATA.purl}",` +
    '"schema":"purl","z":1,"é":"A/"}';
  t.match(body.toString(), `"metadata":${kept}`);
  t.match(body.toString(), `"artifact":{"sha256":"${LOWER}"}`);
});

t.test('two members of one name are rejected, in metadata and around it', async (t) => {
  const { status, json } = await post(
    `{"artifact":{"sha256":"${'1'.repeat(64)}","sha256":"${SHA256}"},` +
      `"metadata":{"schema":"purl","purl":"pkg:npm/a","purl":"pkg:npm/b"}}`,
  );
  t.equal(status, 400);
  const errors = ['/artifact/sha256', '/metadata/purl'].map((path) => ({ path, message: 'occurs twice' }));
  t.match(json, { error: { code: 'request.invalid', details: { errors } } });
});

t.test(
  'strict validation rejects metadata that fails its schema, lists where, and records nothing',
  async (t) => {
    const before = await countStored();
    for (const { name, call } of surfaces) {
      for (const validation of [undefined, ValidationMode.STRICT]) {
        const request = { ...creation(SHA256, INVALID), ...(validation && { validation }) };
        const outcome = await call(createAttestation, request, owner.key);
        t.match(outcome, { code: 'submission.invalid_metadata', status: name === 'REST' ? 422 : 0 }, name);
        t.equal(outcome.grpcCode, name === 'REST' ? 0 : 3);
        t.match(outcome.message, /"validation": "lenient" would|with "validation": "lenient"/);
        t.equal(outcome.details.schema, INVALID.schema);
        t.same(pathsOf(outcome.details), WRONG_AT);
      }
    }
    t.equal(await countStored(), before);
  },
);

t.test('lenient validation stores such metadata with a warning and its violations', async (t) => {
  for (const { name, call } of surfaces) {
    const request = { ...creation(SHA256, INVALID), validation: ValidationMode.LENIENT };
    const { code, response } = await call(createAttestation, request, owner.key);
    t.equal(code, 'ok', name);
    t.match(response, {
      status: 'SUBMISSION_STATUS_QUEUED',
      metadataState: 'METADATA_STATE_INVALID',
      metadata: INVALID,
    });
    const [warning, ...more] = response.warnings as JsonObject[];
    t.same(more, []);
    t.same(Object.keys(warning ?? {}), ['code', 'message', 'details']);
    t.match(warning, { code: 'submission.invalid_metadata', details: { schema: INVALID.schema } });
    t.type(warning?.message, 'string');
    t.same(pathsOf(warning?.details), WRONG_AT);
    t.same({ schema: INVALID.schema, errors: response.metadataErrors }, warning?.details);
  }
  const fine = await post({ ...creation(SHA256), validation: 'lenient' });
  t.match(fine.json, { warnings: [], metadata_state: 'valid', metadata_errors: [] });
});

t.test('an unknown schema is rejected in either mode, with the known names', async (t) => {
  const before = await countStored();
  for (const { name, call } of surfaces) {
    for (const validation of [ValidationMode.STRICT, ValidationMode.LENIENT]) {
      for (const schema of ['cyclonedx', 'PURL', 'toString', '__proto__', '../purl', 'x'.repeat(1_000)]) {
        const request = { ...creation(SHA256, { schema }), validation };
        const outcome = await call(createAttestation, request, owner.key);
        t.match(outcome, { code: 'submission.unknown_schema', details: { known: KNOWN } }, name);
        t.equal(name === 'REST' ? outcome.status : outcome.grpcCode, name === 'REST' ? 422 : 3);
      }
    }
  }
  t.equal(await countStored(), before);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
