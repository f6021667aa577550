import { EventEmitter } from 'node:events';
import type { SentFields } from './hpack-encoder.js';
import { Http2Code, MAX_WINDOW_SIZE } from './protocol.js';
import { ReceiveBuffer } from './receive-buffer.js';

/** What a stream needs of its connection. */
export type StreamOwner = {
  sendHeaders: (stream: Http2Stream, fields: SentFields, isEnd: boolean) => void;
  /** How many bytes of DATA the connection takes now, for one frame; 0 if it is to be asked again by `sendMore`. */
  roomFor: (stream: Http2Stream) => number;
  sendData: (stream: Http2Stream, bytes: Uint8Array, isEnd: boolean) => void;
  /** Gives the client `bytes` more to send. */
  addReceiveWindow: (stream: Http2Stream, bytes: number) => void;
  sendReset: (streamId: number, code: number) => void;
  /** The stream is over: both sides have ended, or it was reset. `close` is to be emitted once that is sent. */
  release: (stream: Http2Stream) => void;
};

const NOTHING = new Uint8Array();
/** What is written beyond this waits for `drain`. */
const HIGH_WATER_BYTES = 16_384;

/**
 * A stream of a connection (RFC 9113, section 5.1): what has come of the request's body, and what is not sent yet of the
 * response's. Emits `data` and `end` while it flows, `drain`, `finish` when the response is sent, and `close`.
 */
export class Http2Stream extends EventEmitter {
  /** Whether the request has no body. */
  readonly endAfterHeaders: boolean;
  /** Whether the whole request has come. */
  isRemoteClosed: boolean;
  /** Whether all of the request was read. */
  readableEnded = false;
  /** Whether it is over, in order or not. */
  destroyed = false;
  /** Of the response, what waits for the client's windows. */
  writableLength = 0;
  sendWindow: number;
  receiveWindow: number;
  /** Of the request, what was read and is not given back to the client's window. */
  consumed = 0;
  /** Whether the connection is going to ask what has come to be read. */
  isTouched = false;
  /** How many bytes of the request may come once its response is sent, before the client is told to stop. */
  maxDiscarded = Number.POSITIVE_INFINITY;
  readonly #owner: StreamOwner;
  readonly #received = new ReceiveBuffer();
  /** By the request's content-length, what is still to come. */
  #expected: number;
  #isFlowing = false;
  #isDiscarding = false;
  #isLocalClosed = false;
  #queue: Uint8Array[] = [];
  #isEnding = false;
  #trailers: SentFields | undefined;
  #needsDrain = false;

  constructor(
    readonly id: number,
    owner: StreamOwner,
    windows: { send: number; receive: number },
    request: { isEnd: boolean; contentLength: number | undefined },
  ) {
    super();
    this.#owner = owner;
    this.sendWindow = windows.send;
    this.receiveWindow = windows.receive;
    this.endAfterHeaders = request.isEnd;
    this.isRemoteClosed = request.isEnd;
    this.#expected = request.contentLength ?? Number.NaN;
  }

  get readableLength(): number {
    return this.#received.length;
  }

  /**
   * Takes DATA. Returns false if it is not what content-length said (RFC 9113, section 8.1.1). A body that ends early once
   * its response is sent is right: Connect's client in Go does so, and would lose the response by a reset.
   */
  receive(bytes: Buffer, isEnd: boolean): boolean {
    this.#expected -= bytes.length;
    if (isEnd) this.isRemoteClosed = true;
    if (this.#expected < 0 || (isEnd && this.#expected > 0 && !this.#isDiscarding)) return false;
    if (this.#isDiscarding) this.#discard(bytes.length);
    else this.#received.append(bytes);
    return true;
  }

  /** Emits what has come, if somebody reads. */
  deliver(): void {
    this.isTouched = false;
    if (this.#isFlowing && this.#received.length > 0) {
      const chunk = this.#received.take();
      this.#owner.addReceiveWindow(this, chunk.length);
      this.emit('data', chunk);
    }
    this.#received.own();
    if (this.isRemoteClosed) this.#endRemote();
  }

  #endRemote(): void {
    if (this.#isFlowing && !this.readableEnded && this.#received.length === 0) {
      this.readableEnded = true;
      this.emit('end');
    }
    this.#endWhenBothHave();
  }

  /** Begins to emit what comes, in the next tick. */
  resume(): void {
    if (this.#isFlowing) return;
    this.#isFlowing = true;
    if (this.#received.length > 0 || this.isRemoteClosed) process.nextTick(() => this.deliver());
  }

  pause(): void {
    this.#isFlowing = false;
  }

  /** All that has come, at once. */
  read(): Buffer {
    const bytes = this.#received.take();
    this.#owner.addReceiveWindow(this, bytes.length);
    this.readableEnded = this.isRemoteClosed;
    return bytes;
  }

  /** Sends header fields; with `isEnd` they are all of the response. */
  respond(fields: SentFields, isEnd: boolean): void {
    if (this.destroyed) return;
    this.#owner.sendHeaders(this, fields, isEnd);
    if (isEnd) this.#endLocal();
  }

  /** Sends bytes of the body. Returns false if the next should wait for `drain`. */
  write(bytes: Uint8Array): boolean {
    if (this.destroyed || bytes.length === 0) return true;
    this.#queue.push(bytes);
    this.writableLength += bytes.length;
    this.sendMore();
    this.#needsDrain = this.writableLength >= HIGH_WATER_BYTES;
    return !this.#needsDrain;
  }

  /** Ends the body, with a last part and trailers. */
  end(bytes: Uint8Array = NOTHING, trailers?: SentFields): void {
    if (this.destroyed) return;
    this.#isEnding = true;
    this.#trailers = trailers;
    if (bytes.length > 0) {
      this.#queue.push(bytes);
      this.writableLength += bytes.length;
    }
    this.sendMore();
  }

  /** Sends as much as the windows take. */
  sendMore(): void {
    while (!this.destroyed && this.#queue.length > 0) {
      const room = this.#owner.roomFor(this);
      if (room <= 0) return;
      this.#sendPart(room);
    }
    if (this.destroyed || this.#isLocalClosed) return;
    if (this.#isEnding) this.#sendEnd();
    else if (this.#needsDrain) {
      this.#needsDrain = false;
      this.emit('drain');
    }
  }

  #sendPart(room: number): void {
    const [first = NOTHING] = this.#queue;
    const part = first.length <= room ? first : first.subarray(0, room);
    if (part.length === first.length) this.#queue.shift();
    else this.#queue[0] = first.subarray(part.length);
    this.writableLength -= part.length;
    const isEnd = this.#isEnding && this.#trailers === undefined && this.#queue.length === 0;
    this.#owner.sendData(this, part, isEnd);
    if (isEnd) this.#endLocal();
  }

  #sendEnd(): void {
    if (this.#trailers === undefined) this.#owner.sendData(this, NOTHING, true);
    else this.#owner.sendHeaders(this, this.#trailers, true);
    this.#endLocal();
  }

  /** Changes what the client takes. Returns false beyond the maximum (RFC 9113, section 6.9.1). */
  addSendWindow(bytes: number): boolean {
    this.sendWindow += bytes;
    return this.sendWindow <= MAX_WINDOW_SIZE;
  }

  /** Ends the stream at once, by RST_STREAM if it is not over. */
  close(code: number): void {
    if (this.destroyed) return;
    this.#owner.sendReset(this.id, code);
    this.abandon();
  }

  /** As `close`, because the response cannot go on: clients take CANCEL for an end of their own. */
  destroy(): void {
    this.close(Http2Code.INTERNAL_ERROR);
  }

  /** Ends the stream when the client has reset it, or the connection is over. */
  abandon(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#queue = [];
    this.writableLength = 0;
    this.#received.take();
    this.#owner.release(this);
  }

  #endLocal(): void {
    this.#isLocalClosed = true;
    this.emit('finish');
    // Of a request that has its response, the rest is not read; a client that is held up sending it would keep it open.
    if (!this.isRemoteClosed && !this.destroyed) {
      this.#isDiscarding = true;
      this.#discard(this.#received.take().length);
    }
    this.#endWhenBothHave();
  }

  /** RFC 9113, section 8.1: of a request that has its response the rest can be refused without an error. */
  #discard(bytes: number): void {
    this.maxDiscarded -= bytes;
    if (this.maxDiscarded < 0 && !this.isRemoteClosed) this.close(Http2Code.NO_ERROR);
    else this.#owner.addReceiveWindow(this, bytes);
  }

  #endWhenBothHave(): void {
    if (this.#isLocalClosed && this.isRemoteClosed) this.abandon();
  }
}
