import type { ServerResponse } from 'node:http';
import { type DescMessage, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { ApiError } from '../../core/errors.js';
import type { HoldResponse } from '../socket/bodies.js';
import type { RequestRecord } from '../socket/requests.js';
import { ErrorStatus, plainStatus, type RpcStatus } from './connect-error.js';
import { grpcTrailers, webTrailers } from './grpc-status.js';
import { envelope, HEAD_BYTES, type MessageFormat } from './messages.js';
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
  /** Called with the bytes of each message. */
  onSent: (bytes: number) => void;
  onEnd: () => void;
};

/** Flags of the last message on Connect, which holds the status. */
const END_FLAG = 2;

/** Makes the response of a stream in the form of its protocol; headers are sent with the first message. */
export function createStreamResponse(deps: StreamResponseDeps): StreamResponse {
  const { record, format, desc, holdResponse, onSent, onEnd } = deps;
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
      const bytes = serialise(format, desc, message);
      holdResponse(record, bytes.length - HEAD_BYTES);
      onSent(bytes.length);
      begin();
      return res.write(bytes);
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

/** Of messages that are sent again and again, as the answers of reflection are. */
const serialised = new WeakMap<Message, Buffer>();

/** The message in its envelope, in binary once for each object. */
function serialise({ isJson }: MessageFormat, desc: DescMessage, message: Message): Buffer {
  if (isJson) return envelope(0, Buffer.from(toJsonString(desc, message)));
  const known = serialised.get(message);
  if (known !== undefined) return known;
  const bytes = envelope(0, toBinary(desc, message));
  serialised.set(message, bytes);
  return bytes;
}

/** The status of a failed call, recorded. The request id is in the headers already. */
function statusOf(record: RequestRecord, error: ApiError | ConnectError): RpcStatus {
  const isOurs = error instanceof ApiError;
  if (isOurs) record.error = error.code;
  const { requestId } = record;
  if (isOurs) return new ErrorStatus(error, requestId, undefined, true);
  return { ...plainStatus(error, requestId), metadata: {} };
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
