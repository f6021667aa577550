import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createFileRegistry, fromBinary, type JsonObject } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type ServiceError, status } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { GoogleError } from 'google-gax';
import t, { type Test } from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../../support/app.js';
import { runBuf } from '../../../support/calling/buf.js';
import { publicMethods, publicServices } from '../../../support/calling/rpcs.js';
import {
  definitionOf,
  describeByReflection,
  filesOf,
  healthClient,
  REFLECTION_VERSIONS,
  reflect,
  servicesOf,
  stockClient,
} from '../../../support/calling/stock-grpc.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation } from '../../rpc/samples.js';
import { submit } from '../../rpc/submitting.js';

const app = await startApp(t, { isProxied: true });
const owner = await newKey(app);
const authorization = `Bearer ${owner.key}`;
const names = (await publicServices()).map(({ typeName }) => typeName);
const ADMIN = [
  'ApiKeyService',
  'AuditService',
  'LogService',
  'PersonService',
  'ProjectExportService',
  'ProjectService',
  'SessionService',
  'SubmissionService',
  'TrustRuleService',
  'TufService',
  'UsageService',
  'WitnessService',
].map((name) => `attestation.admin.v1.${name}`);
const STANDARD = [
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
];
const NOT_FOUND = 5;
const STATUS = loadSync('google/rpc/status.proto', {
  keepCase: true,
  includeDirs: [join(dirname(createRequire(import.meta.url).resolve('google-gax')), '../protos')],
});

t.test('anyone can read the health of the server and of each service', async (t) => {
  const health = healthClient(app.baseUrl);
  t.teardown(health.close);
  const statuses = Object.fromEntries(['', ...ADMIN, ...names].map((name) => [name, { status: 'SERVING' }]));
  for (const [service, told] of Object.entries(statuses)) {
    t.same(await health.call('Check', { service }), told, service);
  }
  await t.rejects(health.call('Check', { service: 'no.such.Service' }), { code: status.NOT_FOUND });
});

t.test('health follows readiness: it goes down and comes back with the database', async (t) => {
  const all = watch(t, '');
  const one = watch(t, 'attestation.v1.BatchService');
  const unknown = watch(t, 'no.such.Service');
  for (const { next } of [all, one]) t.same(await next(), { status: 'SERVING' });
  t.same(await unknown.next(), { status: 'SERVICE_UNKNOWN' });
  app.databaseProxy?.setOpen(false);
  app.databaseProxy?.cut();
  for (const { next } of [all, one]) t.same(await next(), { status: 'NOT_SERVING' });
  const health = healthClient(app.baseUrl);
  t.teardown(health.close);
  t.same(await health.call('Check', { service: '' }), { status: 'NOT_SERVING' });
  app.databaseProxy?.setOpen(true);
  for (const { next } of [all, one]) t.same(await next(), { status: 'SERVING' });
  t.same(await health.call('Check', { service: '' }), { status: 'SERVING' });
});

/** The statuses that a watch is told of. */
function watch(t: Test, service: string): { next: () => Promise<JsonObject> } {
  const health = healthClient(app.baseUrl);
  const stream = health.stream('Watch', { service });
  t.teardown(() => {
    stream.on('error', () => {});
    stream.cancel();
    health.close();
  });
  const answers = stream[Symbol.asyncIterator]();
  return { next: async () => (await answers.next()).value };
}

for (const version of REFLECTION_VERSIONS) {
  t.test(`reflection ${version} describes every service and everything needed to call it`, async (t) => {
    const [listed] = await reflect(app.baseUrl, version, [{ list_services: '' }]);
    t.same(servicesOf(listed ?? {}).sort(), [...names, ...ADMIN, ...STANDARD].sort());
    const set = fromBinary(FileDescriptorSetSchema, await describeByReflection(app.baseUrl, version));
    const registry = createFileRegistry(set);
    for (const { parent, name } of await publicMethods()) {
      const told = registry.getService(parent.typeName)?.methods.find((method) => method.name === name);
      t.ok(told, `${parent.typeName}.${name}`);
    }
  });

  t.test(`reflection ${version} finds files by name, symbol and extension`, async (t) => {
    const extension = { containing_type: 'google.protobuf.MethodOptions', extension_number: 50201 };
    const answers = await reflect(app.baseUrl, version, [
      { file_by_filename: 'attestation/v1/environment.proto' },
      { file_by_filename: 'attestation/v1/batches.proto' },
      { file_containing_symbol: 'attestation.v1.AttestationService.GetBundle' },
      { file_containing_symbol: 'attestation.v1.ERROR_CODE_REQUEST_INVALID' },
      { file_containing_symbol: 'attestation.v1.Submission.log_index' },
      { file_containing_symbol: 'attestation.options.v1.rules' },
      { file_containing_extension: extension },
    ]);
    const files = answers.map((answer) => filesOf(answer).map(({ name }) => name));
    t.same(
      files.map(([first]) => first),
      [
        'attestation/v1/environment.proto',
        'attestation/v1/batches.proto',
        'attestation/v1/attestations.proto',
        'attestation/v1/errors.proto',
        'attestation/v1/attestations.proto',
        'attestation/options/v1/options.proto',
        'attestation/options/v1/options.proto',
      ],
    );
    t.ok(files[0]?.includes('google/protobuf/descriptor.proto'), 'a file comes with its imports');
    t.notOk(files[1]?.includes('google/protobuf/descriptor.proto'), 'and they come once');
    const [numbers] = await reflect(app.baseUrl, version, [
      { all_extension_numbers_of_type: 'google.protobuf.EnumValueOptions' },
    ]);
    t.match(numbers?.all_extension_numbers_response, { extension_number: [50202, 50203] });
  });

  t.test(`reflection ${version} rejects unknown names`, async (t) => {
    const answers = await reflect(app.baseUrl, version, [
      { file_by_filename: '../../etc/passwd' },
      { file_containing_symbol: 'attestation.v1.Nothing' },
      { file_containing_extension: { containing_type: 'attestation.v1.Batch', extension_number: 1 } },
      { all_extension_numbers_of_type: 'attestation.v1.Nothing' },
    ]);
    for (const answer of answers) t.match(answer.error_response, { error_code: NOT_FOUND });
    const [nothing] = await reflect(app.baseUrl, version, [{}]);
    t.match(nothing?.error_response, { error_code: 3 });
  });

  t.test(`a client made from reflection ${version} alone submits and reads`, async (t) => {
    const definition = definitionOf(await describeByReflection(app.baseUrl, version));
    const client = stockClient(app.baseUrl, definition, 'attestation.v1.AttestationService');
    t.teardown(client.close);
    const { artifact, metadata } = creation(randomBytes(32).toString('hex'));
    // What a map is on the wire: protobuf.js makes no maps of descriptors.
    const fields = Object.entries(metadata).map(([key, text]) => ({ key, value: { string_value: text } }));
    const request = { artifact, metadata: { fields } };
    const made = await client.call('CreateAttestation', request, { authorization });
    t.match(made, { id: /^sub_/, status: 'SUBMISSION_STATUS_QUEUED', artifact });
    const got = await client.call('GetAttestation', { id: made.id }, { authorization });
    t.equal(got.leaf_sha256, made.leaf_sha256);
  });

  t.test(`buf curl needs no protos with reflection ${version}`, async (t) => {
    const curl = (...args: string[]) => {
      const reflection = ['--reflect', '--reflect-protocol', `grpc-${version}`, '--http2-prior-knowledge'];
      return runBuf(['curl', ...reflection, '--protocol', 'grpc', ...args]);
    };
    const header = ['--header', `authorization: ${authorization}`];
    const health = await curl(...header, `${app.baseUrl}/attestation.v1.InfoService/GetHealth`);
    t.same(JSON.parse(health), { status: 'ok' });
    const serving = await curl(`${app.baseUrl}/grpc.health.v1.Health/Check`);
    t.same(JSON.parse(serving), { status: 'SERVING' });
    const methods = await curl('--list-methods', app.baseUrl);
    t.match(methods, 'attestation.v1.BatchService/ListBatches');
  });
}

t.test('without an admin token neither reflection nor health knows of an admin API', async (t) => {
  const { baseUrl } = await startApp(t, { isWithoutAdmin: true });
  const [listed] = await reflect(baseUrl, 'v1', [{ list_services: '' }]);
  t.same(servicesOf(listed ?? {}).sort(), [...names, ...STANDARD].sort());
  const [admin] = await reflect(baseUrl, 'v1', [{ file_containing_symbol: String(ADMIN[0]) }]);
  t.match(admin?.error_response, { error_code: NOT_FOUND });
  const health = healthClient(baseUrl);
  t.teardown(health.close);
  await t.rejects(health.call('Check', { service: ADMIN[0] }), { code: status.NOT_FOUND });
});

t.test('a stock client reads our error details, and those of google.rpc', async (t) => {
  const definition = definitionOf(await describeByReflection(app.baseUrl, 'v1'));
  const client = stockClient(app.baseUrl, definition, 'attestation.v1.AttestationService');
  t.teardown(client.close);
  const fail = async (method: string, request: object): Promise<ServiceError> => {
    const answer = client.call(method, request, { authorization });
    const error = await answer.catch((thrown: ServiceError) => thrown);
    if (!(error instanceof Error)) throw new Error(`${method} did not fail`);
    return error;
  };
  const { id } = await submit(app, owner);

  const missing = await fail('GetAttestation', { id: 'sub_none' });
  t.equal(missing.code, status.NOT_FOUND);
  t.match(errorDetail(definition, missing), { code: 'submission.not_found', request_id: /^req_/ });
  t.match(generic(missing), { reason: 'SUBMISSION_NOT_FOUND', domain: 'attestation.v1' });

  const invalid = await fail('ListAttestations', { limit: 201 });
  t.equal(invalid.code, status.INVALID_ARGUMENT);
  t.match(errorDetail(definition, invalid), { code: 'request.invalid' });
  t.match(invalid.details, /^\/limit must be greater than or equal to 1 and/, 'a sentence to read');
  t.match(generic(invalid).statusDetails, [
    {},
    { reason: 'REQUEST_INVALID' },
    { fieldViolations: [{ field: 'limit' }] },
  ]);

  const early = await fail('GetBundle', { id });
  t.match(generic(early).statusDetails, [
    {},
    { reason: 'BUNDLE_NOT_READY' },
    { retryDelay: { seconds: /^\d+$/ } },
  ]);
});

/** Our detail of a status, by nothing but grpc-js and the protos. */
function errorDetail(definition: PackageDefinition, { metadata }: ServiceError): object {
  const [bytes] = metadata.get('grpc-status-details-bin');
  const { details } = messageType(STATUS, 'google.rpc.Status').deserialize(bytes as Buffer) as {
    details: { type_url: string; value: Buffer }[];
  };
  const [first] = details;
  t.equal(first?.type_url, 'type.googleapis.com/attestation.v1.ErrorDetail');
  return messageType(definition, 'attestation.v1.ErrorDetail').deserialize(first?.value as Buffer);
}

function messageType(definition: PackageDefinition, name: string): MessageTypeDefinition<object, object> {
  return definition[name] as MessageTypeDefinition<object, object>;
}

/** What a client library finds in an error that knows google.rpc, and nothing of ours. */
function generic(error: ServiceError): GoogleError {
  return GoogleError.parseGRPCStatusDetails(error as unknown as GoogleError);
}

t.test('an error with more details than metadata holds is cut to fit', async (t) => {
  const surfaces = app.surfaces().filter(({ name }) => name !== 'REST');
  const long = (n: number) => `${'é'.repeat(300)}${n}`;
  const subject = Array.from({ length: 40 }, (_, i) => ({ name: long(i), digest: { [long(i)]: 1 } }));
  const metadata = {
    schema: 'intoto.test_result.v0.1',
    result: long(0),
    configuration: subject,
    [long(1)]: 1,
  };
  const request = creation('7'.repeat(64), metadata);
  const input = { ...request, metadata };
  for (const { name, call } of surfaces) {
    const { code, details, headers, message } = await call(
      AttestationService.method.createAttestation,
      input,
      owner.key,
    );
    t.equal(code, 'submission.invalid_metadata', name);
    t.ok((details.errors as unknown[]).length > 0);
    t.ok(JSON.stringify(details).length <= 2_048, `${JSON.stringify(details).length}`);
    t.ok(message.length <= 512);
    t.ok((headers['grpc-status-details-bin'] ?? '').length < 7_000);
  }
});

t.test('nothing secret was logged', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
