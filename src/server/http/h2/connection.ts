import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Limits } from '../socket/limits.js';
import { Http2Request, Http2Response, type Session } from './exchange.js';
import type { Field } from './fields.js';
import { createAllowance } from './flood.js';
import { FrameReader } from './frame-reader.js';
import { ConnectionError, Flag, FrameType, Http2Code, MAX_STREAM_ID, Setting } from './protocol.js';
import { Receiver, type ReceiverOwner } from './receiver.js';
import { type RequestHead, readRequestHead } from './request-head.js';
import { Sender } from './sender.js';
import { type ChangedSettings, writeSettings } from './settings.js';
import type { Http2Stream } from './stream.js';
import { StreamTable } from './stream-table.js';

type Http2Options = {
  limits: Limits;
  /** Called for each request before it begins. Returns why it and those after it must not. */
  refusalOf?: (session: Session, headers: IncomingHttpHeaders) => string | undefined;
  onRequest: (req: Http2Request, res: Http2Response) => void;
};

/** PING, SETTINGS, PRIORITY, WINDOW_UPDATE, DATA without content, and what is unknown. */
const IDLE_FRAMES = { burst: 1_000, perSecond: 200 };
/** Streams that are reset, by the client or for its faults; as many as nghttp2 takes by default. */
const RESETS = { burst: 1_000, perSecond: 33 };
/** How long the client may take to read GOAWAY before the connection is cut off. */
const LINGER_MS = 500;

type Opened = { stream: Http2Stream; head: RequestHead };

/** The server's side of a connection of HTTP/2 (RFC 9113). */
export class Http2Connection implements Session, ReceiverOwner {
  /** Whether nothing more is read or answered on it. */
  destroyed = false;
  readonly #options: Http2Options;
  readonly #reader = new FrameReader();
  readonly #receiver: Receiver;
  readonly #sender: Sender;
  readonly #streams = new StreamTable();
  #opened: Opened[] = [];
  #touched: Http2Stream[] = [];
  #released: Http2Stream[] = [];
  #isClosing = false;
  /** By GOAWAY; it must not become higher. */
  #lastAnnounced = MAX_STREAM_ID;
  #isEnding = false;
  #timer: NodeJS.Timeout;

  constructor(
    readonly socket: Socket,
    options: Http2Options,
  ) {
    this.#options = options;
    const { limits } = options;
    const allowance = ({ burst, perSecond }: { burst: number; perSecond: number }) =>
      createAllowance(burst, perSecond, () => performance.now());
    const allowances = { idle: allowance(IDLE_FRAMES), resets: allowance(RESETS) };
    this.#sender = new Sender(socket, limits.sendIdleMs, {
      onFlushed: () => this.#onFlushed(),
      onData: () => this.#receiver.earn(),
      onReset: (streamId) => this.#streams.noteReset(streamId),
      onRelease: (stream) => {
        this.#streams.delete(stream.id);
        this.#released.push(stream);
      },
    });
    this.#receiver = new Receiver(this, this.#sender, limits.maxHeaderBytes, allowances);
    this.#timer = setTimeout(() => socket.destroy(), limits.headersTimeoutMs);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => {});
    socket.once('close', () => this.#onClose());
    socket.setTimeout(limits.sessionIdleMs, () => this.close());
    this.#sender.send(FrameType.SETTINGS, 0, 0, ourSettings(limits));
  }

  /** Announces that the connection ends after the request `lastStreamId` (section 6.8). */
  goaway(code: number, lastStreamId = this.#streams.lastStreamId, message = ''): void {
    this.#lastAnnounced = Math.min(this.#lastAnnounced, lastStreamId);
    const payload = Buffer.alloc(8 + message.length);
    payload.writeUInt32BE(this.#lastAnnounced);
    payload.writeUInt32BE(code, 4);
    payload.write(message, 8, 'latin1');
    this.#sender.send(FrameType.GOAWAY, 0, 0, payload);
  }

  /** Takes no more requests, and ends once those up to `lastStreamId` have their responses. */
  close(code: number = Http2Code.NO_ERROR, message = '', lastStreamId = this.#streams.lastStreamId): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.goaway(code, lastStreamId, message);
  }

  /** Ends all at once, for what the client did. */
  fail(code: number, message: string): void {
    if (this.destroyed) return;
    this.goaway(code, undefined, message);
    this.#over();
    this.#isClosing = true;
  }

  #over(): void {
    this.destroyed = true;
    clearTimeout(this.#timer);
    for (const stream of this.#streams.all()) stream.abandon();
  }

  #onClose(): void {
    this.#over();
    this.#sender.schedule();
  }

  #read(chunk: Buffer): void {
    if (this.destroyed) return;
    try {
      this.#reader.read(chunk, (frame) => {
        this.#receiver.take(frame);
        return !this.destroyed;
      });
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.fail(error.code, error.message);
    }
    if (this.#opened.length > 0) this.#begin();
    if (this.#touched.length > 0) this.#deliver();
  }

  /** Begins the requests of what was read at once: those with small bodies are complete, those cancelled never begin. */
  #begin(): void {
    const opened = this.#opened;
    this.#opened = [];
    let refusal: string | undefined;
    for (const { stream, head } of opened) {
      if (stream.destroyed) continue;
      refusal ??= this.#options.refusalOf?.(this, head.headers);
      if (refusal !== undefined) {
        this.close(Http2Code.ENHANCE_YOUR_CALM, refusal, Math.max(0, stream.id - 2));
        stream.abandon();
        continue;
      }
      const res = new Http2Response(stream, this.socket, head.method === 'HEAD');
      const proceed =
        head.headers.expect === undefined
          ? undefined
          : () => res.headersSent || this.#sender.sendHeaders(stream, [':status', '100'], false);
      this.#options.onRequest(new Http2Request(stream, this, head, proceed), res);
    }
  }

  #deliver(): void {
    const touched = this.#touched;
    this.#touched = [];
    for (const stream of touched) stream.deliver();
  }

  #onFlushed(): void {
    const released = this.#released;
    this.#released = [];
    for (const stream of released) stream.emit('close');
    // What `close` has made somebody send goes out first.
    const isDone = this.#streams.size === 0 && this.#sender.output.bytes === 0;
    if (this.#isClosing && isDone) this.#end();
  }

  /** Closed with unread bytes it would be reset, and GOAWAY lost. */
  #end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.destroyed = true;
    clearTimeout(this.#timer);
    this.socket.end();
    const timer = setTimeout(() => this.socket.destroy(), LINGER_MS);
    this.socket.once('close', () => clearTimeout(timer));
  }

  find(streamId: number): Http2Stream | undefined {
    return this.#streams.find(streamId);
  }

  lastStreamId(): number {
    return this.#streams.lastStreamId;
  }

  wasReset(streamId: number): boolean {
    return this.#isClosing || this.#streams.wasReset(streamId);
  }

  open(streamId: number, fields: Field[] | undefined, isEnd: boolean): void {
    this.#streams.lastStreamId = streamId;
    if (this.#isClosing) return;
    const head = fields && readRequestHead(fields);
    const code = this.#faultOf(fields, head, isEnd);
    if (head === undefined || code !== undefined) {
      this.#receiver.refuse(streamId, code ?? Http2Code.PROTOCOL_ERROR);
      return;
    }
    const stream = this.#streams.add(streamId, this.#sender, { isEnd, contentLength: head.contentLength });
    // Section 8.5: this is no proxy.
    if (head.method === 'CONNECT') stream.respond([':status', '405'], true);
    else this.#opened.push({ stream, head });
  }

  /** Why a request does not begin. */
  #faultOf(fields: Field[] | undefined, head: RequestHead | undefined, isEnd: boolean): number | undefined {
    if (fields === undefined) return Http2Code.ENHANCE_YOUR_CALM;
    const isMalformed = head === undefined || (isEnd && (head.contentLength ?? 0) > 0);
    if (isMalformed) return Http2Code.PROTOCOL_ERROR;
    return this.#streams.size >= this.#options.limits.maxStreams ? Http2Code.REFUSED_STREAM : undefined;
  }

  touch(stream: Http2Stream): void {
    if (stream.isTouched) return;
    stream.isTouched = true;
    this.#touched.push(stream);
  }

  refuse(streamId: number, code: number): void {
    const stream = this.#streams.find(streamId);
    if (stream === undefined) this.#sender.sendReset(streamId, code);
    else stream.close(code);
  }

  acknowledgeSettings({ headerTableSize, initialWindowSize }: ChangedSettings): void {
    clearTimeout(this.#timer);
    if (headerTableSize !== undefined) this.#sender.output.encoder.limit(headerTableSize);
    this.#sender.send(FrameType.SETTINGS, Flag.ACK, 0);
    if (initialWindowSize !== undefined) this.#streams.setInitialSendWindow(initialWindowSize);
  }

  clientGoesAway(): void {
    this.close();
  }
}

function ourSettings({ maxStreams, maxHeaderBytes }: Limits): Buffer {
  return writeSettings([
    [Setting.MAX_CONCURRENT_STREAMS, maxStreams],
    [Setting.MAX_HEADER_LIST_SIZE, maxHeaderBytes],
  ]);
}
