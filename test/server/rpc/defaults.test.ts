/** A request that says what the service takes anyway is, for its idempotency key, the request that leaves it out. */
import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  getOption,
  hasOption,
  type JsonObject,
  toJson,
} from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { default_value, rules } from '../../../gen/attestation/options/v1/options_pb.js';
import {
  AttestationService,
  CreateAttestationRequestSchema,
  ItemOutcome,
  ItemOutcomeSchema,
  ValidationMode,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import {
  DestinationKind,
  ExportCompression,
  ExportService,
  ExportStart,
} from '../../../gen/attestation/v1/exports_pb.js';
import { jcs } from '../../../src/proof/bytes/jcs.js';
import { DEFAULT_LIMITS } from '../../../src/server/admin/store/api-keys.js';
import { defaultsOf, withoutDefaults } from '../../../src/server/json/defaults.js';
import { admitsNumber, findRules } from '../../../src/server/json/field-rules.js';
import { asFields, findFieldValue } from '../../../src/server/json/message-codec.js';
import { deriveKeyRing } from '../../../src/server/keys/key-ring.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { publicMethods } from '../../support/calling/rpcs.js';
import { newKey } from '../../support/calling/test-keys.js';
import { BUCKET, OWNER } from '../../support/exports/s3/fixture.js';
import { setExportScene } from '../exports/rpc/exporting.js';
import { creation } from './samples.js';

const { app, store } = await setExportScene(t);
const surfaces = app.surfaces();
const admin = adminOf(app);
const { createAttestation, batchCreateAttestations } = AttestationService.method;
const { createExport } = ExportService.method;
const { createApiKey, rotateApiKey, updateApiKey } = ApiKeyService.method;
const ARTIFACT = 'ab'.repeat(32);

let keys = 0;
const freshKey = () => ({ 'idempotency-key': `defaults-${keys++}` });

/** Asserts that each of two requests replays the other, on the surfaces that `call` names. */
async function assertSame(
  t: Test,
  callers: readonly ((request: never, headers: Record<string, string>) => Promise<JsonObject>)[],
  requests: readonly [plain: object, explicit: object],
): Promise<void> {
  for (const [first, second] of [requests, [...requests].reverse()]) {
    for (const call of callers) {
      const headers = freshKey();
      const { id } = await call(first as never, headers);
      t.match(id, /_/);
      for (const again of callers) {
        const { id: replayed } = await again(second as never, headers);
        t.equal(replayed, id, `${inspect(first)}, then ${inspect(second)}`);
      }
    }
  }
}

const bySurface = (method: DescMethodUnary, apiKey: string) =>
  surfaces.map(({ call }) => async (request: never, headers: Record<string, string>) => {
    const { code, message, response } = await call(method, request, apiKey, headers);
    return code === 'ok' ? response : { id: `${code}: ${message}` };
  });

t.test('a creation that names the default validation is the one that names none', async (t) => {
  const { key } = await newKey(app);
  const plain = creation(ARTIFACT);
  const explicit = { ...plain, validation: ValidationMode.STRICT };
  await assertSame(t, bySurface(createAttestation, key), [plain, explicit]);
  const headers = freshKey();
  const [rest] = surfaces;
  await rest?.call(createAttestation, plain, key, headers);
  const lenient = { ...plain, validation: ValidationMode.LENIENT };
  t.match(await rest?.call(createAttestation, lenient, key, headers), { code: 'idempotency.key_reused' });
});

t.test('so is an item of a batch, in either order', async (t) => {
  const { key } = await newKey(app);
  for (const { call } of surfaces) {
    for (const isPlainFirst of [true, false]) {
      const idempotencyKey = `item-${keys++}`;
      const plain = { ...creation(ARTIFACT), idempotencyKey };
      const explicit = { ...plain, validation: ValidationMode.STRICT };
      const items = isPlainFirst ? [plain, explicit] : [explicit, plain];
      const outcomes = async (sent: object[]) => {
        const { response } = await call(batchCreateAttestations, { items: sent } as never, key);
        return (response.results as JsonObject[]).map(({ outcome }) => outcome);
      };
      const { CREATED, REPLAYED } = ItemOutcome;
      const names = (...wanted: ItemOutcome[]) => wanted.map((one) => ItemOutcomeSchema.value[one]?.name);
      t.same(await outcomes(items), names(CREATED, REPLAYED));
      t.same(await outcomes([...items].reverse()), names(REPLAYED, REPLAYED));
      const alone = { ...creation(ARTIFACT), validation: ValidationMode.STRICT };
      const single = await call(createAttestation, alone, key, { 'idempotency-key': idempotencyKey });
      t.equal(single.headers['idempotent-replayed'], 'true');
    }
  }
});

t.test('an export that names its defaults is the one that names none', async (t) => {
  const { key } = await newKey(app);
  const destination = {
    kind: DestinationKind.S3,
    bucket: BUCKET,
    endpoint: store.url,
    accessKeyId: OWNER.accessKeyId,
    secretAccessKey: OWNER.secretAccessKey,
  };
  const explicit = {
    destination: { ...destination, prefix: 'a/b/', region: 'us-east-1' },
    filter: {},
    start: ExportStart.NOW,
    compression: ExportCompression.NONE,
  };
  const plain = { destination: { ...destination, prefix: 'a/b' } };
  await assertSame(t, bySurface(createExport, key), [plain, explicit]);
});

t.test('so are a key, its rotation and its change that name theirs', async (t) => {
  const { projectId } = await newKey(app);
  const caller = (method: DescMethodUnary) => [
    async (request: never, headers: Record<string, string>) => {
      const { code, message, response } = await admin.call(method, request, headers);
      return code === 'ok' ? response : { id: `${code}: ${message}` };
    },
  ];
  const limits = Object.fromEntries(
    Object.entries(DEFAULT_LIMITS).map(([name, limit]) => [name, BigInt(limit)]),
  );
  const plain = { projectId, environment: Environment.LIVE, name: 'a key' };
  await assertSame(t, caller(createApiKey), [plain, { ...plain, limits }]);
  await assertSame(t, caller(createApiKey), [plain, { ...plain, limits: {} }]);
  await assertSame(t, caller(createApiKey), [
    { ...plain, limits: { ...limits, readsPerSecond: 5n } },
    { ...plain, limits: { readsPerSecond: 5n } },
  ]);
  for (const overlaps of [
    [undefined, { seconds: 86_400n }],
    [{ seconds: 86_400n }, undefined],
  ] as const) {
    const { id } = await admin.ask(createApiKey, plain);
    const headers = freshKey();
    const [first, second] = overlaps;
    const made = await admin.ask(rotateApiKey, { id: String(id), ...(first && { overlap: first }) }, headers);
    const again = await admin.ask(
      rotateApiKey,
      { id: String(id), ...(second && { overlap: second }) },
      headers,
    );
    t.equal(again.id, made.id);
  }
  const { id } = await admin.ask(createApiKey, plain);
  await assertSame(t, caller(updateApiKey), [
    { id, name: 'renamed' },
    { id, name: 'renamed', limits: {} },
  ]);
});

t.test('a request that an earlier version recorded with its defaults is replayed', async (t) => {
  const { key, projectId } = await newKey(app);
  const sent = create(CreateAttestationRequestSchema, {
    ...creation(ARTIFACT),
    validation: ValidationMode.STRICT,
  });
  const [ring] = deriveKeyRing(app.config.secrets.secretKeys, 'idempotency');
  const hashOf = (message: typeof sent) =>
    createHmac('sha256', ring.key)
      .update('attestation.v1.AttestationService/CreateAttestation\n')
      .update(jcs(toJson(CreateAttestationRequestSchema, message)))
      .digest();
  const [rest] = surfaces;
  const headers = freshKey();
  const first = await rest!.call(createAttestation, sent, key, headers);
  const stored = await app.pool<{ hash: Buffer }[]>`
    SELECT k.request_hash AS hash FROM idempotency_key k JOIN named_submission s ON s.id = k.resource_id
    WHERE s.project_id = ${projectId}`;
  const plain = create(CreateAttestationRequestSchema, creation(ARTIFACT));
  t.same(
    stored.map(({ hash }) => hash.toString('hex')),
    [hashOf(plain).toString('hex')],
    'as without it',
  );
  await app.pool`UPDATE idempotency_key SET request_hash = ${hashOf(sent)} WHERE resource_id = ${String(first.response.id)}`;
  for (const { call } of surfaces) {
    const again = await call(createAttestation, sent, key, headers);
    t.equal(again.response.id, first.response.id);
  }
});

/** The RPCs that honour idempotency keys, and those of batches of them. */
async function keyedMethods(): Promise<DescMethodUnary[]> {
  const all = [...(await publicMethods()), ...ADMIN_METHODS];
  return all.filter((method) => {
    const { idempotentByKey, batchOf } = getOption(method, rules);
    return idempotentByKey || batchOf !== '';
  });
}

/** Every field of a message, and of those in it, that has a default. */
function fieldsWithDefault(desc: DescMessage): DescField[] {
  return desc.fields.flatMap((field) => {
    const isOwn = field.message !== undefined && !field.message.typeName.startsWith('google.');
    const inner = isOwn ? fieldsWithDefault(field.message as DescMessage) : [];
    return hasOption(field, default_value) ? [field, ...inner] : inner;
  });
}

t.test('every default of a mutating RPC is one by its proto', async (t) => {
  const found = (await keyedMethods()).flatMap(({ input }) => fieldsWithDefault(input));
  t.ok(found.length >= 10, String(found.length));
  for (const field of new Set(found)) {
    const { parent } = field;
    const value = findFieldValue(field, asFields(defaultsOf(parent)));
    const message = create(parent, { [field.localName]: value } as never);
    t.same(
      withoutDefaults(parent, toJson(parent, message) as JsonObject),
      {},
      `${parent.name}.${field.name}`,
    );
  }
});

/** Whether a request may leave an enum out. */
function mayBeLeftOut(field: DescField): boolean {
  const rules = findRules(field);
  if (field.enum === undefined || field.fieldKind === 'list') return false;
  return rules?.required !== true && admitsNumber(rules, 0);
}

function enumFields(desc: DescMessage): DescField[] {
  return desc.fields.flatMap((field) => {
    const isOwn = field.message !== undefined && !field.message.typeName.startsWith('google.');
    return isOwn ? enumFields(field.message as DescMessage) : field.enum === undefined ? [] : [field];
  });
}

t.test('every enum that a mutating RPC does without has a default, or stays as it is', async (t) => {
  const fields = (await keyedMethods()).flatMap(({ input }) => enumFields(input)).filter(mayBeLeftOut);
  const without = fields.filter((field) => !hasOption(field, default_value));
  t.same([...new Set(without.map(({ parent, name }) => `${parent.name}.${name}`))].sort(), [
    'UpdateProjectRequest.public_lookup',
    'UpdateWebhookRequest.status',
  ]);
});
