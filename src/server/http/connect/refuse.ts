import { Code, type ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import { asApiError } from '../call/failure.js';
import type { Interceptors } from '../call/interceptors.js';
import { ClientGone } from '../socket/read-body.js';
import type { RequestRecord } from '../socket/requests.js';
import { connectError } from './connect-error.js';
import { setGrpcMessage } from './grpc-message.js';
import { type RpcAnswer, sendWhileReading } from './write-response.js';

/** Answers a call that came to nothing before its message was parsed, in the form of its protocol. */
export function refuseCall(
  { interceptors, log }: { interceptors: Interceptors; log: Logger },
  record: RequestRecord,
  call: Call,
  thrown: unknown,
): void {
  if (thrown instanceof ClientGone) return;
  const error = asApiError(log, thrown, call);
  addConclusion(interceptors, call);
  sendWhileReading(record.req, record.res, refusalAnswer(record, call, error));
}

/** The answer to a call that is refused, in the form of its protocol; the record is told of the error. */
export function refusalAnswer(record: RequestRecord, call: Call, error: ApiError): RpcAnswer {
  record.error = error.code;
  // gRPC wants `unimplemented` for an encoding it does not know, which is not the catalogue's code for it.
  const isUnknownEncoding = error.code === ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE;
  const told = connectError(error, call, isUnknownEncoding ? Code.Unimplemented : undefined);
  return statusAnswer(record, told);
}

/** Adds what the headers of every answer say of a call to those of its own. */
export function addConclusion({ conclude }: Interceptors, call: Call): void {
  const headers = conclude(call);
  for (let i = 0; i < headers.length; i += 2) {
    call.responseHeaders.set(headers[i] as string, headers[i + 1] as string);
  }
}

/** The error in the form of the request's protocol. */
function statusAnswer({ surface, req }: RequestRecord, error: ConnectError): RpcAnswer {
  if (surface === 'connect') {
    const headers = [...error.metadata, ['content-type', 'application/json']].flat();
    return { status: codeToHttpStatus(error.code), headers, body: errorToJsonBytes(error, undefined) };
  }
  const trailer = setGrpcMessage(setTrailerStatus(new Headers(), error));
  const headers = ['content-type', req.headers['content-type'] ?? ''];
  if (surface === 'grpc') return { status: 200, headers, trailer };
  return { status: 200, headers, body: encodeEnvelope(trailerFlag, trailerSerialize(trailer)) };
}
