/** gRPC as a program uses it that has none of our code: grpc-js, with what reflection or a descriptor file tells it. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { create, fromBinary, type JsonObject, toBinary } from '@bufbuild/protobuf';
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import {
  type ClientReadableStream,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  Metadata,
  makeClientConstructor,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadFileDescriptorSetFromBuffer, loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { service as healthService } from 'grpc-health-check';

/** A client with a method for each RPC, made at run time. */
export type StockClient = {
  /** A unary call; rejects with grpc-js's ServiceError. */
  call: (method: string, request: object, metadata?: Record<string, string>) => Promise<JsonObject>;
  /** A call whose answer streams. */
  stream: (method: string, request: object) => ClientReadableStream<JsonObject>;
  close: () => void;
};

/** The versions of the reflection protocol. */
export const REFLECTION_VERSIONS = ['v1', 'v1alpha'] as const;
export type ReflectionVersion = (typeof REFLECTION_VERSIONS)[number];

/** No method names it: it comes with errors. */
const ERROR_DETAIL = 'attestation.v1.ErrorDetail';
const SPELLING = { keepCase: true, enums: String, longs: Number, defaults: true };
const PACKAGES = createRequire(import.meta.url);
const REFLECTION_PROTOS = join(dirname(PACKAGES.resolve('@grpc/reflection')), '../proto');

/** A client of one service of a package definition. `baseUrl` is of plain HTTP. */
export function stockClient(baseUrl: string, definition: PackageDefinition, service: string): StockClient {
  const found = service
    .split('.')
    .reduce<unknown>((object, name) => (object as GrpcObject)[name], loadPackageDefinition(definition));
  return open(baseUrl, found as ServiceClientConstructor);
}

function open(baseUrl: string, Client: ServiceClientConstructor): StockClient {
  const client = new Client(new URL(baseUrl).host, credentials.createInsecure());
  return {
    call: (method, request, metadata = {}) =>
      new Promise((resolve, reject) => {
        client[method]?.(request, metadataOf(metadata), (error: ServiceError | null, answer: JsonObject) =>
          error === null ? resolve(answer) : reject(error),
        );
      }),
    stream: (method, request) => client[method]?.(request),
    close: () => client.close(),
  };
}

/** What a FileDescriptorSet describes. */
export function definitionOf(descriptorSet: Uint8Array): PackageDefinition {
  return loadFileDescriptorSetFromBuffer(Buffer.from(descriptorSet), SPELLING);
}

/** The stock health client. */
export function healthClient(baseUrl: string): StockClient {
  return open(baseUrl, makeClientConstructor(healthService, 'grpc.health.v1.Health'));
}

/** Asks a server's reflection, on one stream, and answers with what it said to each request. */
export async function reflect(
  baseUrl: string,
  version: ReflectionVersion,
  requests: readonly object[],
): Promise<JsonObject[]> {
  const definition = loadSync(`grpc/reflection/${version}/reflection.proto`, {
    ...SPELLING,
    defaults: false,
    includeDirs: [REFLECTION_PROTOS],
  });
  const client = stockClient(baseUrl, definition, `grpc.reflection.${version}.ServerReflection`);
  const stream = client.stream('ServerReflectionInfo', {}) as ClientReadableStream<JsonObject> & {
    write: (request: object) => void;
    end: () => void;
  };
  for (const request of requests) stream.write(request);
  stream.end();
  const answers: JsonObject[] = [];
  for await (const answer of stream) answers.push(answer);
  client.close();
  return answers;
}

/** All that a server's reflection tells of its services, as a FileDescriptorSet. */
export async function describeByReflection(baseUrl: string, version: ReflectionVersion): Promise<Uint8Array> {
  const [listed] = await reflect(baseUrl, version, [{ list_services: '' }]);
  const services = servicesOf(listed ?? {});
  const wanted = [...services, ERROR_DETAIL].map((name) => ({ file_containing_symbol: name }));
  const answers = await reflect(baseUrl, version, wanted);
  const file = importedFirst(answers.flatMap((answer) => filesOf(answer)));
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
}

/** In the order that a FileDescriptorSet wants: each file after those it imports. */
function importedFirst(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  const ordered = new Set<FileDescriptorProto>();
  const add = (name: string) => {
    const file = byName.get(name);
    if (file === undefined) throw new Error(`reflection did not send ${name}`);
    if (ordered.has(file)) return;
    for (const imported of file.dependency) add(imported);
    ordered.add(file);
  };
  for (const name of byName.keys()) add(name);
  return [...ordered];
}

/** The names in an answer of reflection that lists services. */
export function servicesOf({ list_services_response: response }: JsonObject): string[] {
  return (response as unknown as { service: { name: string }[] }).service.map(({ name }) => name);
}

/** The files in an answer of reflection. */
export function filesOf({ file_descriptor_response: response }: JsonObject): FileDescriptorProto[] {
  const { file_descriptor_proto: files } = response as unknown as { file_descriptor_proto: Buffer[] };
  return files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

function metadataOf(entries: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}
