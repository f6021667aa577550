import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { assertSendable, isConnectionSpecific } from './fields.js';
import type { RequestHead } from './request-head.js';
import type { Http2Stream } from './stream.js';

type Listener = (...args: never[]) => void;
type Value = string | readonly string[] | number;
type Values = Readonly<Record<string, Value | undefined>>;

/** A connection, as far as the requests on it are concerned. */
export type Session = {
  readonly socket: Socket;
  readonly destroyed: boolean;
  /** Takes no more requests, and ends it once those that have begun are answered (RFC 9113, section 6.8). */
  close: (code?: number, message?: string) => void;
};

/** One half of an exchange: its events are those of the stream. */
class Half {
  constructor(readonly stream: Http2Stream) {}

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  on(event: string, listener: Listener): this {
    this.stream.on(event, listener as () => void);
    return this;
  }

  once(event: string, listener: Listener): this {
    this.stream.once(event, listener as () => void);
    return this;
  }

  off(event: string, listener: Listener): this {
    this.stream.off(event, listener as () => void);
    return this;
  }
}

/** A request of HTTP/2, with what the handlers of REST and of RPCs use of Node's. */
export class Http2Request extends Half {
  readonly httpVersion = '2.0';
  readonly httpVersionMajor = 2;
  readonly httpVersionMinor = 0;
  readonly method: string;
  readonly authority: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly socket: Socket;
  url: string;
  #onRead: (() => void) | undefined;

  /** `onRead`: called when somebody begins to read the body. */
  constructor(
    stream: Http2Stream,
    readonly session: Session,
    head: RequestHead,
    onRead: (() => void) | undefined,
  ) {
    super(stream);
    this.method = head.method;
    this.authority = head.authority;
    this.headers = head.headers;
    this.rawHeaders = head.rawHeaders;
    this.socket = session.socket;
    this.url = head.path;
    this.#onRead = onRead;
  }

  /** Whether the whole request has come. */
  get complete(): boolean {
    return this.stream.isRemoteClosed;
  }

  get readableEnded(): boolean {
    return this.stream.readableEnded;
  }

  get readableLength(): number {
    return this.stream.readableLength;
  }

  read(): Buffer {
    return this.stream.read();
  }

  override on(event: string, listener: Listener): this {
    super.on(event, listener);
    if (event === 'data') {
      this.#onRead?.();
      this.#onRead = undefined;
      this.stream.resume();
    }
    return this;
  }

  pause(): this {
    this.stream.pause();
    return this;
  }

  resume(): this {
    this.stream.resume();
    return this;
  }
}

/** Its response. Header fields are sent with the first bytes of the body, or with its end. */
export class Http2Response extends Half {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  /** Names and values in turn, as they are set. */
  readonly #fields: (string | Value)[] = [];
  #trailers: string[] | undefined;

  constructor(
    stream: Http2Stream,
    readonly socket: Socket,
    private readonly isHead: boolean,
  ) {
    super(stream);
  }

  get writableLength(): number {
    return this.stream.writableLength;
  }

  getHeader(name: string): Value | undefined {
    const at = this.#placeOf(name);
    return at < 0 ? undefined : this.#fields[at + 1];
  }

  /** Sets a field, whose name is in lower case. Throws for a value that HTTP does not carry. */
  setHeader(name: string, value: Value): this {
    for (const one of typeof value === 'object' ? value : [value]) assertSendable(name, String(one));
    const at = this.#placeOf(name);
    if (at >= 0) this.#fields[at + 1] = value;
    else this.#fields.push(name, value);
    return this;
  }

  removeHeader(name: string): void {
    const at = this.#placeOf(name);
    if (at >= 0) this.#fields.splice(at, 2);
  }

  addTrailers(trailers: Values): void {
    const fields: string[] = [];
    for (const name in trailers) {
      const value = String(trailers[name]);
      assertSendable(name, value);
      fields.push(name, value);
    }
    this.#trailers = fields;
  }

  /** Sets the status, and fields by name or as a flat [name, value, …] list. */
  writeHead(status: number, fields: Values | readonly string[] = {}): this {
    this.statusCode = status;
    if (isList(fields)) {
      for (let i = 0; i < fields.length; i += 2) this.setHeader(fields[i] as string, fields[i + 1] as string);
      return this;
    }
    for (const name in fields) {
      const value = fields[name];
      if (value !== undefined) this.setHeader(name, value);
    }
    return this;
  }

  flushHeaders(): void {
    this.#respond(false);
  }

  write(chunk: Uint8Array): boolean {
    this.#respond(false);
    return this.#hasNoBody() || this.stream.write(chunk);
  }

  end(body?: Uint8Array | string): this {
    if (this.writableEnded) return this;
    this.writableEnded = true;
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    const isEmpty = bytes === undefined || bytes.length === 0 || this.#hasNoBody();
    if (isEmpty && this.#trailers === undefined && !this.headersSent) this.#respond(true);
    else {
      this.#respond(false);
      this.stream.end(isEmpty ? undefined : bytes, this.#trailers);
    }
    return this;
  }

  destroy(): void {
    this.stream.destroy();
  }

  #placeOf(name: string): number {
    for (let i = 0; i < this.#fields.length; i += 2) if (this.#fields[i] === name) return i;
    return -1;
  }

  /** RFC 9110, section 6.4.1. */
  #hasNoBody(): boolean {
    return this.isHead || this.statusCode === 204 || this.statusCode === 304;
  }

  #respond(isEnd: boolean): void {
    if (this.headersSent) return;
    this.headersSent = true;
    const sent = [':status', String(this.statusCode)];
    for (let i = 0; i < this.#fields.length; i += 2) {
      const name = this.#fields[i] as string;
      const value = this.#fields[i + 1] as Value;
      if (isConnectionSpecific(name)) continue;
      if (typeof value === 'object') for (const one of value) sent.push(name, one);
      else sent.push(name, String(value));
    }
    if (this.getHeader('date') === undefined) sent.push('date', httpDate());
    this.stream.respond(sent, isEnd);
  }
}

function isList(fields: Values | readonly string[]): fields is readonly string[] {
  return Array.isArray(fields);
}

let dateText = '';
let dateSecond = 0;

/** The value of Date (RFC 9110, section 6.6.1), which Node's servers send too; made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1_000).toUTCString();
  }
  return dateText;
}
