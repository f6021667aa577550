import {
  create,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { Code, type ServiceImpl } from '@connectrpc/connect';
import { file_attestation_v1_errors } from '../../../../gen/attestation/v1/errors_pb.js';
import { file_google_rpc_error_details } from '../../../../gen/google/rpc/error_details_pb.js';
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from '../../../../gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionAlpha } from '../../../../gen/grpc/reflection/v1alpha/reflection_pb.js';
import { type DescriptorIndex, indexDescriptors } from './descriptor-index.js';

/** The reflection services. */
export const REFLECTION_SERVICES: readonly DescService[] = [ServerReflection, ServerReflectionAlpha];

/** The files of error details, which no method refers to. */
const ERROR_DETAILS: readonly DescFile[] = [file_attestation_v1_errors, file_google_rpc_error_details];

type MessageResponse = MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse'];
type Response = MessageShape<typeof ServerReflectionResponseSchema>;
/** An answer, and the files in it. */
type Answer = { response: Response; files: readonly DescFile[] };

/** Answers that are kept, so that they are serialised once; the longest is 100 KB. */
const KEPT_ANSWERS = 64;
const KEPT_HOST_CHARACTERS = 64;

/**
 * Implements gRPC server reflection over the services and all that their files import. A stream sends each imported file
 * once. v1alpha differs only in the name of its package.
 */
export function reflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const index = indexDescriptors(services, ERROR_DETAILS);
  const kept = new Map<string, Answer>();
  const open = () => {
    const sent = new Set<DescFile>();
    return (request: ServerReflectionRequest) => {
      // What was sent before changes the answer.
      const key = sent.size === 0 ? keyOf(request) : undefined;
      const known = key === undefined ? undefined : kept.get(key);
      for (const file of known?.files ?? []) sent.add(file);
      if (known !== undefined) return known.response;
      const response = create(ServerReflectionResponseSchema, {
        validHost: request.host,
        originalRequest: request,
        messageResponse: respond(index, sent, request),
      });
      if (key !== undefined) keep(kept, key, { response, files: [...sent] });
      return response;
    };
  };
  return {
    async *serverReflectionInfo(requests) {
      const answer = open();
      for await (const request of requests) yield answer(request);
    },
  };
}

/** By what an answer on a new stream is found again; undefined for requests that are not kept. */
function keyOf(request: ServerReflectionRequest): string | undefined {
  const { host, $unknown: unknown = [] } = request;
  const { case: kind, value } = request.messageRequest;
  if (typeof value !== 'string' || host.length > KEPT_HOST_CHARACTERS || unknown.length > 0) return undefined;
  return `${kind} ${host} ${value}`;
}

/** The oldest makes room. What is unknown is not kept: there is no end of it. */
function keep(kept: Map<string, Answer>, key: string, answer: Answer): void {
  if (answer.response.messageResponse.case === 'errorResponse') return;
  for (const oldest of kept.keys()) {
    if (kept.size < KEPT_ANSWERS) break;
    kept.delete(oldest);
  }
  kept.set(key, answer);
}

function respond(
  index: DescriptorIndex,
  sent: Set<DescFile>,
  { messageRequest: { case: kind, value } }: ServerReflectionRequest,
): MessageResponse {
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
      return refusal(Code.InvalidArgument, 'the request has no kind that this server supports');
  }
}

function extensionNumbers(index: DescriptorIndex, typeName: string): MessageResponse {
  if (index.findBySymbol(typeName) === undefined) return notFound(typeName);
  const extensionNumber = index.extensionsOf(typeName).map(({ number }) => number);
  return { case: 'allExtensionNumbersResponse', value: { baseTypeName: typeName, extensionNumber } };
}

/** The file and those of its imports that were not sent on this stream yet. */
function files(
  index: DescriptorIndex,
  file: DescFile | undefined,
  sent: Set<DescFile>,
  wanted: string,
): MessageResponse {
  if (file === undefined) return notFound(wanted);
  const needed = index.withImports(file).filter((one) => one === file || !sent.has(one));
  for (const one of needed) sent.add(one);
  const fileDescriptorProto = needed.map((one) => index.serialize(one));
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
}

function notFound(name: string): MessageResponse {
  return refusal(Code.NotFound, `${name} is unknown`);
}

function refusal(errorCode: Code, errorMessage: string): MessageResponse {
  return { case: 'errorResponse', value: { errorCode, errorMessage } };
}
