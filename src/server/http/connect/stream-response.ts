import type { ServerResponse } from 'node:http';
import { type DescMessage, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { errorToJson } from '@connectrpc/connect/protocol-connect';
import type { ApiError } from '../../core/errors.js';
import type { HoldResponse } from '../socket/memory.js';
import type { RequestRecord } from '../socket/requests.js';
import { connectError } from './connect-error.js';
import { envelope } from './envelope.js';
import type { MessageFormat } from './message-format.js';
import { grpcTrailers, webTrailers } from './refusal.js';

/** The response of a call that streams. */
export type StreamResponse = {
  /** Sends a message. Returns false if the client does not read as fast: the next one should wait for `drain`. */
  send: (message: Message) => boolean;
  /** Ends the response, with an error or without. Later calls of either do nothing. */
  end: (error?: ApiError | ConnectError) => void;
  isOver: () => boolean;
};

type StreamResponseDeps = {
  record: RequestRecord;
  format: MessageFormat;
  desc: DescMessage;
  holdResponse: HoldResponse;
  onEnd: () => void;
};

/** Flags of the last message on Connect, which holds the status. */
const END_FLAG = 2;

/** Makes the response of a stream in the form of its protocol; headers are sent with the first message. */
export function createStreamResponse(deps: StreamResponseDeps): StreamResponse {
  const { record, format, desc, holdResponse, onEnd } = deps;
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = record.res as ServerResponse;
  let isOver = false;
  const begin = () => {
    if (res.headersSent) return;
    res.setHeader('content-type', format.contentType);
    res.setHeader('x-request-id', record.requestId);
    res.writeHead(200);
  };
  return {
    isOver: () => isOver || res.destroyed,
    send(message) {
      if (isOver || res.destroyed) return true;
      const bytes = format.isJson ? Buffer.from(toJsonString(desc, message)) : toBinary(desc, message);
      holdResponse(record, bytes.length);
      begin();
      return res.write(envelope(0, bytes));
    },
    end(error) {
      if (isOver) return;
      isOver = true;
      onEnd();
      if (res.destroyed || res.writableEnded) return;
      begin();
      endWith(res, format, error && statusOf(record, error));
      if (!record.req.complete) record.req.resume();
    },
  };
}

/** The status of a failed call, recorded. The request id is in the headers already. */
function statusOf(record: RequestRecord, error: ApiError | ConnectError): ConnectError {
  if (error.name !== 'ApiError') return error as ConnectError;
  const apiError = error as ApiError;
  record.error = apiError.code;
  const status = connectError(apiError, { requestId: record.requestId, responseHeaders: new Map() });
  status.metadata.delete('x-request-id');
  return status;
}

function endWith(res: ServerResponse, { protocol }: MessageFormat, error: ConnectError | undefined): void {
  if (protocol === 'grpc') {
    res.addTrailers(grpcTrailers(error));
    res.end();
  } else res.end(protocol === 'connect' ? connectEnd(error) : webTrailers(error));
}

function connectEnd(error: ConnectError | undefined): Buffer {
  const metadata: Record<string, string[]> = {};
  error?.metadata.forEach((value, name) => {
    metadata[name] = [value];
  });
  const end = error === undefined ? {} : { error: errorToJson(error, undefined), metadata };
  return envelope(END_FLAG, Buffer.from(JSON.stringify(end)));
}
