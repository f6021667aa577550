import { readFileSync } from 'node:fs';
import {
  type DescMethod,
  fromBinary,
  getExtension,
  type JsonObject,
  type JsonValue,
  setExtension,
} from '@bufbuild/protobuf';
import {
  type FieldDescriptorProto,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
  type MethodDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import t from 'tap';
import {
  example as exampleOption,
  rules as rulesOption,
} from '../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { openApiDocument } from '../../src/generate/openapi/document.js';

const OPENAPI = new URL('../../gen/openapi/', import.meta.url);
const PUBLIC = /^attestation\/v1\//;
const published = JSON.parse(readFileSync(new URL('openapi.json', OPENAPI), 'utf8')) as JsonObject;

/** The public protos as the generator sees them, anew each time. */
function readSet(): FileDescriptorSet {
  return fromBinary(FileDescriptorSetSchema, readFileSync(new URL('descriptor.binpb', OPENAPI)));
}

function generate(set: FileDescriptorSet): JsonObject {
  return openApiDocument(
    set,
    set.file.map(({ name }) => name).filter((name) => PUBLIC.test(name)),
  );
}

function getMethod(set: FileDescriptorSet, { parent, name }: DescMethod): MethodDescriptorProto {
  const file = set.file.find((candidate) => candidate.name === `${parent.file.name}.proto`);
  const service = file?.service.find((candidate) => candidate.name === parent.name);
  const method = service?.method.find((candidate) => candidate.name === name);
  if (method === undefined) throw new Error(`no method ${name}`);
  return method;
}

function getField(set: FileDescriptorSet, message: string, name: string): FieldDescriptorProto {
  const desc = set.file.flatMap((file) => file.messageType).find((candidate) => candidate.name === message);
  const field = desc?.field.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`no field ${name}`);
  return field;
}

t.test('the committed document is the one generated from the descriptors', async (t) => {
  t.strictSame(generate(readSet()), published);
});

t.test('the document has the options of an RPC, and nothing else changes', async (t) => {
  const set = readSet();
  const { options } = getMethod(set, BatchService.method.getBatch);
  if (options === undefined) throw new Error('no options');
  const rules = getExtension(options, rulesOption);
  setExtension(options, rulesOption, {
    ...rules,
    successStatus: 202,
    scope: 'other:read',
    errors: ['export.not_found'],
  });
  const { paths } = generate(set) as { paths: Record<string, { get: JsonObject }> };
  const operation = paths['/v1/batches/{id}']?.get as { security: JsonObject[]; responses: JsonObject };
  t.strictSame(operation.security, [{ api_key: ['other:read'] }]);
  t.strictSame(Object.keys(operation.responses), [
    '202',
    '400',
    '401',
    '403',
    '404',
    '429',
    '500',
    '503',
    '504',
  ]);
  t.match(operation.responses['404'], { $ref: '#/components/responses/ExportNotFound' });
  const others = Object.entries(published.paths as JsonObject).filter(
    ([path]) => path !== '/v1/batches/{id}',
  );
  for (const [path, item] of others) t.strictSame(paths[path], item, path);
});

t.test('a file that holds a message has its schema', async (t) => {
  const paths = published.paths as Record<string, JsonObject>;
  const schema = { $ref: '#/components/schemas/ProofBundle' };
  for (const ending of ['bundle', 'bundle.json']) {
    const { get } = paths[`/v1/attestations/{id}/${ending}`] as JsonObject;
    t.match(get, { responses: { 200: { content: { 'application/json': { schema } } } } }, ending);
  }
  const set = readSet();
  const options = getMethod(set, AttestationService.method.downloadBundle).options!;
  setExtension(options, rulesOption, {
    ...getExtension(options, rulesOption),
    bodyTypes: ['attestation.v1.Nothing'],
  });
  t.throws(() => generate(set), /knows no message attestation\.v1\.Nothing/);
});

t.test('a file of bytes is one, for generators', async (t) => {
  const paths = published.paths as Record<string, JsonObject>;
  const schema = { type: 'string', format: 'binary' };
  for (const [ending, type] of [
    ['cose', 'application/cose; cose-type="cose-sign1"'],
    ['ots', 'application/vnd.opentimestamps.v1'],
  ] as const) {
    const { get } = paths[`/v1/attestations/{id}/bundle.${ending}`] as JsonObject;
    t.match(get, { responses: { 200: { content: { [type]: { schema } } } } }, ending);
  }
});

t.test('a constant and an enum have a type, without which generators know none', async (t) => {
  const untyped: string[] = [];
  const visit = (value: JsonValue, pointer: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { const: constant, enum: values, type } = value as JsonObject;
    const isText = typeof constant === 'string' || Array.isArray(values);
    if (isText && type !== 'string') untyped.push(pointer);
    for (const [name, member] of Object.entries(value)) visit(member, `${pointer}/${name}`);
  };
  visit(published, '');
  t.strictSame(untyped, []);
});

t.test('no component has a name that generators give to what an operation returns', async (t) => {
  const { paths, components } = published as unknown as {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: JsonObject; responses: JsonObject };
  };
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  const taken = new Set(operations.map(({ operationId }) => `${operationId}Response`.toLowerCase()));
  const names = [...Object.keys(components.schemas), ...Object.keys(components.responses)];
  t.strictSame(
    names.filter((name) => taken.has(name.toLowerCase())),
    [],
  );
});

t.test('an error that the catalogue lacks, and an example that is no JSON, are named', async (t) => {
  const wrongCode = readSet();
  const { options } = getMethod(wrongCode, BatchService.method.getBatch);
  if (options === undefined) throw new Error('no options');
  setExtension(options, rulesOption, { ...getExtension(options, rulesOption), errors: ['nothing.like_it'] });
  t.throws(() => generate(wrongCode), /BatchService\.GetBatch: no error has the code nothing\.like_it/);

  const wrongExample = readSet();
  const field = getField(wrongExample, 'Batch', 'tree_size');
  if (field.options === undefined) throw new Error('no options');
  setExtension(field.options, exampleOption, 'many');
  t.throws(() => generate(wrongExample), /attestation\.v1\.Batch\.tree_size: many is no JSON/);
});

t.test('every JSON body and every parameter of a path has an example', async (t) => {
  type Media = { content?: Record<string, { example?: unknown; examples?: unknown }> };
  type Operation = {
    operationId: string;
    parameters: { in?: string; example?: unknown }[];
    requestBody?: Media;
    responses: Record<string, Media>;
  };
  const { paths, webhooks } = published as unknown as Record<
    'paths' | 'webhooks',
    Record<string, Record<string, Operation>>
  >;
  const operations = [...Object.values(paths), ...Object.values(webhooks)].flatMap((item) =>
    Object.values(item),
  );
  for (const { operationId, parameters, requestBody, responses } of operations) {
    const lacking = parameters.filter(
      (parameter) => parameter.in === 'path' && parameter.example === undefined,
    );
    t.strictSame(lacking, [], `parameters of ${operationId}`);
    for (const { content = {} } of [requestBody ?? {}, ...Object.values(responses)]) {
      const media = content['application/json'];
      if (media === undefined || operationId.startsWith('download')) continue;
      t.ok(media.example ?? media.examples, operationId);
    }
  }
});
