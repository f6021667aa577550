import type { Socket } from 'node:net';
import { atTurnEnd } from '../socket/turn-end.js';
import type { SentFields } from './hpack-encoder.js';
import { Output } from './output.js';
import { DEFAULT_MAX_FRAME_SIZE, DEFAULT_WINDOW_SIZE, Flag, FrameType, MAX_WINDOW_SIZE } from './protocol.js';
import type { Http2Stream, StreamOwner } from './stream.js';

/** What the connection does about what is sent. */
type SenderHooks = {
  /** All was handed to the socket. */
  onFlushed: () => void;
  /** DATA is sent, which the client may answer by WINDOW_UPDATE. */
  onData: () => void;
  onReset: (streamId: number) => void;
  onRelease: (stream: Http2Stream) => void;
};

/** DATA waits once so much is to be sent to the socket, and nothing more is read beyond the second. */
const MAX_OUTPUT_BYTES = 65_536;
const MAX_BACKLOG_BYTES = 262_144;
/** A window is given back when half of it is used. */
const RETURNED_BYTES = DEFAULT_WINDOW_SIZE >> 1;

/**
 * What a connection sends: frames leave in one write at the end of a turn. DATA respects the connection's window (RFC 9113,
 * section 5.2) and the socket; streams for which there is no room take turns. A client that takes nothing for `idleMs`
 * is cut off, and nothing is read from it while much is to be sent.
 */
export class Sender implements StreamOwner {
  readonly output = new Output();
  readonly #socket: Socket;
  readonly #idleMs: number;
  readonly #hooks: SenderHooks;
  readonly #waiting = new Set<Http2Stream>();
  #window = DEFAULT_WINDOW_SIZE;
  #isBacklogged = false;
  #isPumping = false;
  #willFlush = false;
  #stalled: NodeJS.Timeout | undefined;

  constructor(socket: Socket, idleMs: number, hooks: SenderHooks) {
    this.#socket = socket;
    this.#idleMs = idleMs;
    this.#hooks = hooks;
    socket.on('drain', () => this.#onDrain());
    socket.once('close', () => clearTimeout(this.#stalled));
  }

  /** Sends what `output` holds, at the end of the turn. */
  schedule(): void {
    if (this.#willFlush) return;
    this.#willFlush = true;
    atTurnEnd(() => this.#flush());
  }

  /** How many bytes of DATA a stream may send now; it is asked again by `sendMore` if only the connection has no room. */
  roomFor(stream: Http2Stream): number {
    if (stream.sendWindow <= 0) return 0;
    const mustWait = this.#waiting.size > 0 && !this.#isPumping;
    if (mustWait || !this.#hasRoom()) {
      this.#waiting.add(stream);
      return 0;
    }
    return Math.min(stream.sendWindow, this.#window, DEFAULT_MAX_FRAME_SIZE);
  }

  send(type: number, flags: number, streamId: number, payload?: Uint8Array): void {
    this.output.frame(type, flags, streamId, payload);
    this.schedule();
  }

  sendHeaders(stream: Http2Stream, fields: SentFields, isEnd: boolean): void {
    this.output.headers(stream.id, fields, isEnd);
    this.schedule();
  }

  sendData(stream: Http2Stream, bytes: Uint8Array, isEnd: boolean): void {
    stream.sendWindow -= bytes.length;
    this.#window -= bytes.length;
    this.#hooks.onData();
    this.send(FrameType.DATA, isEnd ? Flag.END_STREAM : 0, stream.id, bytes);
  }

  sendReset(streamId: number, code: number): void {
    this.output.integer(FrameType.RST_STREAM, streamId, code);
    this.schedule();
    this.#hooks.onReset(streamId);
  }

  /** Gives back window, of the connection with id 0. */
  updateWindow(streamId: number, bytes: number): void {
    this.output.integer(FrameType.WINDOW_UPDATE, streamId, bytes);
    this.schedule();
  }

  addReceiveWindow(stream: Http2Stream, bytes: number): void {
    stream.consumed += bytes;
    if (stream.isRemoteClosed || stream.destroyed || stream.consumed < RETURNED_BYTES) return;
    stream.receiveWindow += stream.consumed;
    this.updateWindow(stream.id, stream.consumed);
    stream.consumed = 0;
  }

  release(stream: Http2Stream): void {
    this.#waiting.delete(stream);
    this.#hooks.onRelease(stream);
    this.schedule();
  }

  /** Takes WINDOW_UPDATE of the connection. Returns false beyond the maximum. */
  addWindow(bytes: number): boolean {
    this.#window += bytes;
    if (this.#window > MAX_WINDOW_SIZE) return false;
    this.#pump();
    return true;
  }

  #hasRoom(): boolean {
    return this.#window > 0 && !this.#isBacklogged && this.output.bytes < MAX_OUTPUT_BYTES;
  }

  #pump(): void {
    if (this.#waiting.size === 0) return;
    this.#isPumping = true;
    for (const stream of [...this.#waiting]) {
      if (!this.#hasRoom()) break;
      this.#waiting.delete(stream);
      stream.sendMore();
    }
    this.#isPumping = false;
  }

  #flush(): void {
    this.#willFlush = false;
    if (this.#socket.writable && !this.output.flush(this.#socket)) this.#onBacklog();
    this.#hooks.onFlushed();
    if (!this.#isBacklogged) this.#pump();
  }

  #onBacklog(): void {
    if (!this.#isBacklogged) this.#stalled = setTimeout(() => this.#socket.destroy(), this.#idleMs);
    this.#isBacklogged = true;
    if (this.#socket.writableLength > MAX_BACKLOG_BYTES) this.#socket.pause();
  }

  #onDrain(): void {
    if (!this.#isBacklogged) return;
    this.#isBacklogged = false;
    clearTimeout(this.#stalled);
    this.#socket.resume();
    this.#pump();
  }
}
