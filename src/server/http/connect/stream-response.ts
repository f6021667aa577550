import type { ServerResponse } from 'node:http';
import { type DescMessage, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { ApiError } from '../../core/errors.js';
import type { HoldResponse } from '../socket/memory.js';
import type { RequestRecord } from '../socket/requests.js';
import { plainStatus, type RpcStatus, rpcStatus } from './connect-error.js';
import { envelope } from './envelope.js';
import { grpcTrailers, webTrailers } from './grpc-status.js';
import type { MessageFormat } from './message-format.js';
import { connectStatus } from './refusal.js';

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

/** Sending so much costs as much as a request. */
const BYTES_OF_WORK = 16 * 1024;
const NO_HEADERS: ReadonlyMap<string, string> = new Map();
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
      record.work += bytes.length / BYTES_OF_WORK;
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
function statusOf(record: RequestRecord, error: ApiError | ConnectError): RpcStatus {
  const isOurs = error instanceof ApiError;
  if (isOurs) record.error = error.code;
  const { requestId } = record;
  const status = isOurs ? rpcStatus(error, requestId, NO_HEADERS) : plainStatus(error, requestId);
  const { 'x-request-id': _sent, ...metadata } = status.metadata;
  return { ...status, metadata };
}

function endWith(res: ServerResponse, { protocol }: MessageFormat, status: RpcStatus | undefined): void {
  if (protocol === 'grpc') {
    res.addTrailers(grpcTrailers(status));
    res.end();
  } else res.end(protocol === 'connect' ? connectEnd(status) : webTrailers(status));
}

function connectEnd(status: RpcStatus | undefined): Buffer {
  const metadata = Object.entries(status?.metadata ?? {}).map(([name, value]) => [name, [value]]);
  const end = status && { error: connectStatus(status), metadata: Object.fromEntries(metadata) };
  return envelope(END_FLAG, Buffer.from(JSON.stringify(end ?? {})));
}
