import type { Message } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import { tooLarge } from '../socket/bodies.js';
import type { NodeRequest, NodeResponse } from '../socket/requests.js';
import { unreadable } from './connect-error.js';
import { COMPRESSED_FLAG, HEAD_BYTES, unnamedCompression } from './messages.js';
import type { StreamResponse } from './stream-response.js';

type Conversation = {
  req: NodeRequest;
  res: NodeResponse;
  response: StreamResponse;
  maxBytes: number;
  maxMessages: number;
  parse: (bytes: Uint8Array) => Message;
  answer: (request: Message) => Message;
  /** Called with the error of `parse`, `answer` or sending; ends the response. */
  fail: (error: unknown) => void;
};

const NOTHING = Buffer.alloc(0);

/**
 * Answers each message of a stream as it arrives, in turn. What a client sends while it does not read the answers stays
 * unread itself, so that a stream holds one answer and one message at most.
 */
export function answerEach(conversation: Conversation): void {
  const { req, res, response, fail } = conversation;
  let pending: Buffer = NOTHING;
  let count = 0;
  let isEnded = false;
  let isHeld = false;
  const proceed = () => {
    isHeld = false;
    try {
      while (!isHeld && !response.isOver()) {
        const frame = takeFrame(pending, conversation.maxBytes);
        if (frame === undefined) break;
        pending = frame.rest;
        if (++count > conversation.maxMessages) throw tooManyMessages(conversation.maxMessages);
        isHeld = !response.send(conversation.answer(conversation.parse(frame.message)));
      }
      if (isHeld) hold();
      else if (isEnded) finish();
    } catch (error) {
      fail(error);
    }
  };
  const hold = () => {
    req.pause();
    res.once('drain', () => {
      req.resume();
      proceed();
    });
  };
  const finish = () => {
    if (pending.length > 0) throw unreadable('its last message is incomplete');
    response.end();
  };
  req.on('data', (chunk: Buffer) => {
    if (response.isOver()) return;
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    if (!isHeld) proceed();
  });
  const onEnd = () => {
    isEnded = true;
    if (!isHeld) proceed();
  };
  req.once('end', onEnd);
  if (req.readableEnded) onEnd();
}

/** The first message of the received bytes. Undefined if it is not complete. */
function takeFrame(bytes: Buffer, maxBytes: number): { message: Buffer; rest: Buffer } | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const length = bytes.readUInt32BE(1);
  if (length > maxBytes) throw tooLarge(maxBytes);
  if (((bytes[0] as number) & COMPRESSED_FLAG) !== 0) throw unnamedCompression();
  const end = HEAD_BYTES + length;
  if (bytes.length < end) return undefined;
  return {
    message: bytes.subarray(HEAD_BYTES, end),
    rest: bytes.length === end ? NOTHING : bytes.subarray(end),
  };
}

function tooManyMessages(max: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `a stream takes ${max} messages; begin another one`);
}
