import { assertNoCycle, type FieldBlock, FieldBlocks, unpad } from './field-blocks.js';
import type { Field } from './fields.js';
import type { Allowance } from './flood.js';
import type { Frame } from './frame-reader.js';
import { HpackDecoder } from './hpack-decoder.js';
import {
  ConnectionError,
  DEFAULT_WINDOW_SIZE,
  Flag,
  FrameType,
  flowControlError,
  frameSizeError,
  Http2Code,
  MAX_WINDOW_SIZE,
  protocolError,
} from './protocol.js';
import { areTrailers } from './request-head.js';
import type { Sender } from './sender.js';
import { type ChangedSettings, readSettings } from './settings.js';
import type { Http2Stream } from './stream.js';

/** The connection, as its frames change it. */
export type ReceiverOwner = {
  find: (streamId: number) => Http2Stream | undefined;
  /** The highest id of a request so far. */
  lastStreamId: () => number;
  /** Whether we have reset the stream a short while ago, so that the client may still send on it. */
  wasReset: (streamId: number) => boolean;
  /** Begins a request; fields are undefined if there were too many. */
  open: (streamId: number, fields: Field[] | undefined, isEnd: boolean) => void;
  /** Asks a stream to deliver what has come, once all that was read is taken. */
  touch: (stream: Http2Stream) => void;
  /** Resets a stream for what the client did. */
  refuse: (streamId: number, code: number) => void;
  acknowledgeSettings: (changed: ChangedSettings) => void;
  clientGoesAway: () => void;
};

const NOTHING = Buffer.alloc(0);
const RETURNED_BYTES = DEFAULT_WINDOW_SIZE >> 1;
/** Justified by a request, and by DATA with content: PING to measure, WINDOW_UPDATE. */
const EARNED = 4;

/** What the client's frames mean (RFC 9113, section 6). Throws ConnectionErrors. */
export class Receiver {
  readonly #decoder = new HpackDecoder();
  readonly #blocks = new FieldBlocks();
  readonly #owner: ReceiverOwner;
  readonly #sender: Sender;
  readonly #maxListSize: number;
  /** Of frames that bring nothing forward. */
  readonly #idle: Allowance;
  readonly #resets: Allowance;
  #hasSettings = false;
  #window = DEFAULT_WINDOW_SIZE;

  constructor(
    owner: ReceiverOwner,
    sender: Sender,
    maxListSize: number,
    allowances: { idle: Allowance; resets: Allowance },
  ) {
    this.#sender = sender;
    this.#owner = owner;
    this.#maxListSize = maxListSize;
    this.#idle = allowances.idle;
    this.#resets = allowances.resets;
  }

  /** Allows the frames that something justifies which brings the connection forward. */
  earn(): void {
    this.#idle.earn(EARNED);
  }

  /** Takes a frame. */
  take(frame: Frame): void {
    const { type } = frame;
    if (!this.#hasSettings && (type !== FrameType.SETTINGS || (frame.flags & Flag.ACK) !== 0)) {
      throw protocolError('SETTINGS does not come first');
    }
    if (this.#blocks.isInterrupted && type !== FrameType.CONTINUATION) {
      throw protocolError('a field block is interrupted');
    }
    if (type === FrameType.HEADERS) this.#takeHeaders(frame);
    else if (type === FrameType.DATA) this.#takeData(frame);
    else if (type === FrameType.WINDOW_UPDATE) this.#takeWindowUpdate(frame);
    else if (type === FrameType.CONTINUATION) this.#takeContinuation(frame);
    else this.#takeRare(frame);
  }

  #takeRare(frame: Frame): void {
    const { type } = frame;
    this.#spend(this.#idle);
    if (type === FrameType.RST_STREAM) this.#takeReset(frame);
    else if (type === FrameType.SETTINGS) this.#takeSettings(frame);
    else if (type === FrameType.PING) this.#takePing(frame);
    else if (type === FrameType.PRIORITY) this.#takePriority(frame);
    else if (type === FrameType.GOAWAY) this.#takeGoaway(frame);
    else if (type === FrameType.PUSH_PROMISE) throw protocolError('a client does not push');
  }

  /** Section 10.5. */
  #spend(allowance: Allowance): void {
    if (allowance.spend()) return;
    throw new ConnectionError(Http2Code.ENHANCE_YOUR_CALM, 'too many frames that bring nothing forward');
  }

  #takeHeaders(frame: Frame): void {
    const isOpen = this.#owner.find(frame.streamId) !== undefined;
    if (!isOpen && frame.streamId % 2 === 0) throw protocolError('HEADERS of a stream with an even id');
    const block = this.#blocks.begin(frame);
    if (block !== undefined) this.#takeBlock(block);
  }

  #takeContinuation(frame: Frame): void {
    const block = this.#blocks.goOn(frame);
    if (block !== undefined) this.#takeBlock(block);
  }

  /** Decoded whatever becomes of it, or the table would differ from the client's. */
  #takeBlock({ streamId, isEnd, bytes, start, end }: FieldBlock): void {
    const fields = this.#decoder.decode(bytes, start, end, this.#maxListSize);
    const stream = this.#owner.find(streamId);
    if (stream !== undefined) this.#takeTrailers(stream, fields, isEnd);
    else if (streamId > this.#owner.lastStreamId()) {
      this.earn();
      this.#owner.open(streamId, fields, isEnd);
    } else if (!this.#owner.wasReset(streamId)) {
      throw new ConnectionError(Http2Code.STREAM_CLOSED, 'HEADERS of a stream that is closed');
    }
  }

  /** Trailers, which nothing here reads. */
  #takeTrailers(stream: Http2Stream, fields: Field[] | undefined, isEnd: boolean): void {
    if (stream.isRemoteClosed) this.refuse(stream.id, Http2Code.STREAM_CLOSED);
    else if (!isEnd || fields === undefined || !areTrailers(fields)) {
      this.refuse(stream.id, Http2Code.PROTOCOL_ERROR);
    } else this.#receive(stream, NOTHING, true);
  }

  #takeData(frame: Frame): void {
    const { streamId, flags, bytes } = frame;
    const flowBytes = frame.end - frame.start;
    const { start, end } = unpad(frame);
    this.#assertNotIdle(streamId, 'DATA');
    this.#window -= flowBytes;
    if (this.#window < 0) throw flowControlError();
    // The connection's window is given back at once, so that a body that is not read holds up no other.
    if (this.#window < RETURNED_BYTES) {
      this.#sender.updateWindow(0, DEFAULT_WINDOW_SIZE - this.#window);
      this.#window = DEFAULT_WINDOW_SIZE;
    }
    const isEnd = (flags & Flag.END_STREAM) !== 0;
    if (end > start) this.earn();
    else if (!isEnd) this.#spend(this.#idle);
    const stream = this.#owner.find(streamId);
    if (stream === undefined || stream.isRemoteClosed) {
      if (!this.#owner.wasReset(streamId)) this.refuse(streamId, Http2Code.STREAM_CLOSED);
      return;
    }
    stream.receiveWindow -= flowBytes;
    if (stream.receiveWindow < 0) {
      this.refuse(streamId, Http2Code.FLOW_CONTROL_ERROR);
      return;
    }
    if (flowBytes > end - start) this.#sender.addReceiveWindow(stream, flowBytes - (end - start));
    this.#receive(stream, bytes.subarray(start, end), isEnd);
  }

  #receive(stream: Http2Stream, bytes: Buffer, isEnd: boolean): void {
    if (stream.receive(bytes, isEnd)) this.#owner.touch(stream);
    else this.refuse(stream.id, Http2Code.PROTOCOL_ERROR);
  }

  /** Resets a stream for what the client did; as often as it may reset streams itself. */
  refuse(streamId: number, code: number): void {
    this.#spend(this.#resets);
    this.#owner.refuse(streamId, code);
  }

  #takeReset({ start, end, streamId }: Frame): void {
    if (end - start !== 4) throw frameSizeError();
    this.#assertNotIdle(streamId, 'RST_STREAM');
    this.#spend(this.#resets);
    this.#owner.find(streamId)?.abandon();
  }

  #takeWindowUpdate({ bytes, start, end, streamId }: Frame): void {
    this.#spend(this.#idle);
    if (end - start !== 4) throw frameSizeError();
    const increment = bytes.readUInt32BE(start) & MAX_WINDOW_SIZE;
    if (streamId === 0) {
      if (increment === 0) throw protocolError('WINDOW_UPDATE by nothing');
      if (!this.#sender.addWindow(increment)) throw flowControlError();
      return;
    }
    this.#assertNotIdle(streamId, 'WINDOW_UPDATE');
    const stream = this.#owner.find(streamId);
    if (stream === undefined) return;
    if (increment === 0) this.refuse(streamId, Http2Code.PROTOCOL_ERROR);
    else if (!stream.addSendWindow(increment)) this.refuse(streamId, Http2Code.FLOW_CONTROL_ERROR);
    else stream.sendMore();
  }

  #takeSettings(frame: Frame): void {
    if (frame.streamId !== 0) throw protocolError('SETTINGS of a stream');
    if ((frame.flags & Flag.ACK) !== 0) {
      if (frame.end > frame.start) throw frameSizeError();
      return;
    }
    this.#hasSettings = true;
    this.#owner.acknowledgeSettings(readSettings(frame));
  }

  #takePing({ bytes, start, end, flags, streamId }: Frame): void {
    if (end - start !== 8) throw frameSizeError();
    if (streamId !== 0) throw protocolError('PING of a stream');
    if ((flags & Flag.ACK) === 0) this.#sender.send(FrameType.PING, Flag.ACK, 0, bytes.subarray(start, end));
  }

  /** Section 5.3.2: priorities are not followed. */
  #takePriority({ bytes, start, end, streamId }: Frame): void {
    if (end - start !== 5) throw frameSizeError();
    if (streamId === 0) throw protocolError('PRIORITY of no stream');
    assertNoCycle(bytes, start, streamId);
  }

  #takeGoaway({ start, end, streamId }: Frame): void {
    if (end - start < 8) throw frameSizeError();
    if (streamId !== 0) throw protocolError('GOAWAY of a stream');
    this.#owner.clientGoesAway();
  }

  /** Section 5.1: on streams that nobody has opened only HEADERS and PRIORITY may come. */
  #assertNotIdle(streamId: number, what: string): void {
    if (streamId === 0 || streamId % 2 === 0 || streamId > this.#owner.lastStreamId()) {
      throw protocolError(`${what} of a stream that is not open`);
    }
  }
}
