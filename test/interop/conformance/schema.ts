/** The protos of Connect's conformance suite, as `buf build` describes them. */
import { readFile } from 'node:fs/promises';
import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescService,
  fromBinary,
  type Registry,
  setExtension,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema, MethodOptionsSchema } from '@bufbuild/protobuf/wkt';
import { Access, MethodRulesSchema, rules } from '../../../gen/attestation/options/v1/options_pb.js';

const PACKAGE = 'connectrpc.conformance.v1';
/** The method that a server must not have. */
const UNIMPLEMENTED = 'Unimplemented';

/** What the suite's server works with. */
export type Schema = {
  /** The unary methods that a server has to implement. */
  service: DescService;
  message: (name: string) => DescMessage;
  /** The types that an Any may hold. */
  registry: Registry;
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
  const service = registry.getService(`${PACKAGE}.ConformanceService`);
  if (service === undefined) throw new Error(`${path} has no ConformanceService`);
  return { service, registry, message: (name) => find(registry, name) };
}

function find(registry: ReturnType<typeof createFileRegistry>, name: string): DescMessage {
  const found = registry.getMessage(`${PACKAGE}.${name}`);
  if (found === undefined) throw new Error(`the conformance protos have no ${name}`);
  return found;
}
