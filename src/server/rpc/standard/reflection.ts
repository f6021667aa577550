import { create, type DescFile, type DescService, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, type ConnectRouter } from '@connectrpc/connect';
import { file_attestation_v1_errors } from '../../../../gen/attestation/v1/errors_pb.js';
import { file_google_rpc_error_details } from '../../../../gen/google/rpc/error_details_pb.js';
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../../../../gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionAlpha } from '../../../../gen/grpc/reflection/v1alpha/reflection_pb.js';
import { type DescriptorIndex, indexDescriptors } from './descriptor-index.js';

/** The reflection services themselves. */
export const REFLECTION_SERVICES: readonly DescService[] = [ServerReflection, ServerReflectionAlpha];

/** What errors carry, which no method names. */
const DETAILS: readonly DescFile[] = [file_attestation_v1_errors, file_google_rpc_error_details];

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse'];

/**
 * Serves gRPC server reflection, v1 and v1alpha, over the services and everything their files import, to anyone who
 * asks. A file that was sent on a stream is not sent along again on it.
 */
export function reflectionRoutes(services: readonly DescService[]): (router: ConnectRouter) => void {
  const index = indexDescriptors(services, DETAILS);
  const info = (requests: AsyncIterable<ServerReflectionRequest>) => answerAll(index, requests);
  return (router) => {
    router.rpc(ServerReflection.method.serverReflectionInfo, info);
    // The two versions differ in the name of their package only.
    const { serverReflectionInfo } = ServerReflectionAlpha.method;
    const messages = { input: ServerReflectionRequestSchema, output: ServerReflectionResponseSchema };
    router.rpc({ ...serverReflectionInfo, ...messages }, info);
  };
}

async function* answerAll(
  index: DescriptorIndex,
  requests: AsyncIterable<ServerReflectionRequest>,
): AsyncIterable<ServerReflectionResponse> {
  const sent = new Set<DescFile>();
  for await (const request of requests) {
    yield create(ServerReflectionResponseSchema, {
      validHost: request.host,
      originalRequest: request,
      messageResponse: answer(index, sent, request),
    });
  }
}

function answer(
  index: DescriptorIndex,
  sent: Set<DescFile>,
  { messageRequest: { case: kind, value } }: ServerReflectionRequest,
): Answer {
  switch (kind) {
    case 'fileByFilename':
      return files(index, index.findFile(value), sent, value);
    case 'fileContainingSymbol':
      return files(index, index.findBySymbol(value), sent, value);
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = value;
      const found = index.extensionsOf(containingType).find(({ number }) => number === extensionNumber);
      return files(index, found?.file, sent, `extension ${extensionNumber} of ${containingType}`);
    }
    case 'allExtensionNumbersOfType':
      return extensionNumbers(index, value);
    case 'listServices': {
      const service = index.services.map((name) => ({ name }));
      return { case: 'listServicesResponse', value: { service } };
    }
    default:
      return refusal(Code.InvalidArgument, 'the request asks for nothing this server knows');
  }
}

function extensionNumbers(index: DescriptorIndex, typeName: string): Answer {
  if (index.findBySymbol(typeName) === undefined) return notFound(typeName);
  const extensionNumber = index.extensionsOf(typeName).map(({ number }) => number);
  return { case: 'allExtensionNumbersResponse', value: { baseTypeName: typeName, extensionNumber } };
}

/** The file, and those of its imports that the client does not have yet. */
function files(
  index: DescriptorIndex,
  file: DescFile | undefined,
  sent: Set<DescFile>,
  wanted: string,
): Answer {
  if (file === undefined) return notFound(wanted);
  const needed = index.withImports(file).filter((one) => one === file || !sent.has(one));
  for (const one of needed) sent.add(one);
  const fileDescriptorProto = needed.map((one) => index.serialize(one));
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
}

function notFound(what: string): Answer {
  return refusal(Code.NotFound, `${what} is not known here`);
}

function refusal(errorCode: Code, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode, errorMessage } };
}
