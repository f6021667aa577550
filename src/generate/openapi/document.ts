import {
  createFileRegistry,
  type DescFile,
  type DescService,
  type FileRegistry,
  getOption,
  hasOption,
  type JsonObject,
} from '@bufbuild/protobuf';
import type { FileDescriptorSet } from '@bufbuild/protobuf/wkt';
import { api as apiOption } from '../../../gen/attestation/options/v1/options_pb.js';
import { commentOf, packageComment } from './comment.js';
import { type Components, createComponents } from './components.js';
import { errorMessages } from './error-schema.js';
import { headerComponents } from './headers.js';
import { describe, type Operation, operationsOf, tagOf } from './operation.js';
import { findRequestBody, PARAMETERS, parameters } from './request.js';
import { outputsOf, responses } from './responses.js';
import { webhookBodies, webhooks } from './webhook.js';

const SECURITY: JsonObject = {
  api_key: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key of one project and environment: `Authorization: Bearer svc_live_…`.',
  },
};

/**
 * The OpenAPI 3.1 document of the REST surface of some proto files, with comments: everything in it comes from their
 * descriptors and options. Its server is `/`, which the service replaces by its address.
 *
 * @param set the files, after those they import
 * @param names the files whose services are described
 */
export function openApiDocument(set: FileDescriptorSet, names: readonly string[]): JsonObject {
  const registry = createFileRegistry(set);
  const files = names.map((name) => getFile(registry, name));
  const services = files.flatMap((file) => file.services);
  const operations = operationsOf(services);
  const errors = errorMessages(registry);
  const bodies = webhookBodies(files);
  const components = createComponents([...outputsOf(operations), errors.envelope, ...bodies]);
  const paths = pathItems(operations, (operation) => {
    const body = findRequestBody(components, operation);
    return {
      ...describe(operation),
      parameters: parameters(components, operation),
      ...(body === undefined ? {} : { requestBody: body }),
      responses: responses(components, operation, errors),
    };
  });
  const hooks = webhooks(components, registry, bodies);
  return {
    openapi: '3.1.1',
    info: infoOf(files),
    servers: [{ url: '/' }],
    tags: tagsOf(operations.map(({ method }) => method.parent)),
    security: [{ api_key: [] }],
    paths,
    webhooks: hooks,
    components: componentsObject(components),
  };
}

function infoOf(files: readonly DescFile[]): JsonObject {
  const file = files.find((candidate) => hasOption(candidate, apiOption));
  if (file === undefined) throw new Error('no file has the option that names the API');
  const { title, version, license } = getOption(file, apiOption);
  return {
    title,
    version,
    description: packageComment(file),
    license: { name: license, identifier: license },
  };
}

function tagsOf(services: readonly DescService[]): JsonObject[] {
  return [...new Set(services)].map((service) => ({ name: tagOf(service), description: commentOf(service) }));
}

function pathItems(
  operations: readonly Operation[],
  write: (operation: Operation) => JsonObject,
): JsonObject {
  const items: Record<string, JsonObject> = {};
  for (const operation of operations) {
    items[operation.path] = {
      ...items[operation.path],
      [operation.httpMethod.toLowerCase()]: write(operation),
    };
  }
  return items;
}

function componentsObject({ schemas, responses, examples }: Components): JsonObject {
  return {
    securitySchemes: SECURITY,
    parameters: PARAMETERS,
    headers: headerComponents(),
    responses: sorted(responses),
    schemas: sorted(schemas),
    examples: sorted(examples),
  };
}

function sorted(members: ReadonlyMap<string, JsonObject>): JsonObject {
  return Object.fromEntries([...members].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function getFile(registry: FileRegistry, name: string): DescFile {
  const file = registry.getFile(name);
  if (file === undefined) throw new Error(`no file is called ${name}`);
  return file;
}
