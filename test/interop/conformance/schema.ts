/** The protos of Connect's conformance suite, as `buf build` describes them. */
import { readFile } from 'node:fs/promises';
import {
  clone,
  create,
  createFileRegistry,
  type DescMessage,
  type DescService,
  fromBinary,
  setExtension,
} from '@bufbuild/protobuf';
import {
  type FileDescriptorSet,
  FileDescriptorSetSchema,
  file_google_protobuf_struct,
  MethodOptionsSchema,
} from '@bufbuild/protobuf/wkt';
import { Access, MethodRulesSchema, rules } from '../../../gen/attestation/options/v1/options_pb.js';

const PACKAGE = 'connectrpc.conformance.v1';
/** The method that a server must not have. */
const UNIMPLEMENTED = 'Unimplemented';

/** What the suite's server works with. */
export type Schema = {
  /** The unary methods that a server has to implement. */
  service: DescService;
  message: (name: string) => DescMessage;
  /** The same message for ProtoJSON, where each Any of a response is a Struct of the same JSON. */
  jsonMessage: (name: string) => DescMessage;
};

/** Reads the descriptor set. */
export async function readSchema(path: string): Promise<Schema> {
  const set = fromBinary(FileDescriptorSetSchema, await readFile(path));
  for (const file of set.file) {
    for (const service of file.service) {
      service.method = service.method.filter(
        ({ name, clientStreaming, serverStreaming }) =>
          !clientStreaming && !serverStreaming && name !== UNIMPLEMENTED,
      );
      for (const method of service.method) {
        method.options ??= create(MethodOptionsSchema);
        setExtension(method.options, rules, create(MethodRulesSchema, { access: Access.PUBLIC }));
      }
    }
  }
  const registry = createFileRegistry(set);
  const json = createFileRegistry(withStructs(set));
  const service = registry.getService(`${PACKAGE}.ConformanceService`);
  if (service === undefined) throw new Error(`${path} has no ConformanceService`);
  return { service, message: (name) => find(registry, name), jsonMessage: (name) => find(json, name) };
}

function find(registry: ReturnType<typeof createFileRegistry>, name: string): DescMessage {
  const found = registry.getMessage(`${PACKAGE}.${name}`);
  if (found === undefined) throw new Error(`the conformance protos have no ${name}`);
  return found;
}

/** An Any in JSON needs the types that it may hold, which no message of the service needs: a Struct takes its place. */
function withStructs(set: FileDescriptorSet): FileDescriptorSet {
  const copy = clone(FileDescriptorSetSchema, set);
  for (const file of copy.file) {
    if (file.package !== PACKAGE) continue;
    file.dependency.push('google/protobuf/struct.proto');
    const payload = file.messageType.find(({ name }) => name === 'ConformancePayload');
    const requests = payload?.nestedType
      .find(({ name }) => name === 'RequestInfo')
      ?.field.find(({ name }) => name === 'requests');
    if (requests !== undefined) requests.typeName = '.google.protobuf.Struct';
  }
  copy.file.unshift(file_google_protobuf_struct.proto);
  return copy;
}
