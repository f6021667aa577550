import type {
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';

/** What the handlers of REST and of RPCs use of Node's request. */
type RequestMembers = Pick<
  Http2ServerRequest,
  | 'authority'
  | 'complete'
  | 'destroyed'
  | 'headers'
  | 'httpVersion'
  | 'httpVersionMajor'
  | 'method'
  | 'rawHeaders'
  | 'readableEnded'
  | 'socket'
  | 'stream'
  | 'url'
>;

/** What they use of its response. */
type ResponseMembers = Pick<
  Http2ServerResponse,
  'destroyed' | 'headersSent' | 'statusCode' | 'stream' | 'writableEnded' | 'writableLength'
>;

type Listener = (...args: never[]) => void;
type Fields = Record<string, string | string[] | number>;

/** A request of HTTP/2, by its stream alone. */
class StreamRequest implements RequestMembers {
  readonly httpVersion = '2.0';
  readonly httpVersionMajor = 2;
  readonly method: string;
  readonly authority: string;
  /** One object for each connection, where Node's request makes one for each stream. */
  readonly socket: Socket;
  url: string;

  constructor(
    readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    readonly rawHeaders: string[],
  ) {
    this.method = headers[':method'] as string;
    this.authority = headers[':authority'] as string;
    this.socket = stream.session?.socket as Socket;
    this.url = headers[':path'] as string;
  }

  get complete(): boolean {
    return this.stream.readableEnded || this.stream.endAfterHeaders;
  }

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  get readableEnded(): boolean {
    return this.stream.readableEnded;
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

  pause(): this {
    this.stream.pause();
    return this;
  }

  resume(): this {
    this.stream.resume();
    return this;
  }
}

/** Its response. Header fields and trailers are sent with the first bytes of the body, or with its end. */
class StreamResponse implements ResponseMembers {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  readonly #fields: Fields = Object.create(null);
  #trailers: Fields | undefined;

  constructor(readonly stream: ServerHttp2Stream) {}

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  get writableLength(): number {
    return this.stream.writableLength;
  }

  get socket(): Socket | undefined {
    return this.stream.session?.socket as Socket | undefined;
  }

  on(event: string, listener: Listener): this {
    this.stream.on(event, listener as () => void);
    return this;
  }

  once(event: string, listener: Listener): this {
    this.stream.once(event, listener as () => void);
    return this;
  }

  getHeader(name: string): string | string[] | number | undefined {
    return this.#fields[name];
  }

  setHeader(name: string, value: string | string[] | number): this {
    this.#fields[name] = value;
    return this;
  }

  addTrailers(trailers: Fields): void {
    this.#trailers = trailers;
  }

  writeHead(status: number, fields?: Fields): this {
    this.statusCode = status;
    Object.assign(this.#fields, fields);
    return this;
  }

  flushHeaders(): void {
    this.#respond(false, false);
  }

  write(chunk: Uint8Array): boolean {
    this.#respond(false, false);
    return this.stream.write(chunk);
  }

  end(body?: Uint8Array | string): this {
    if (this.writableEnded) return this;
    const isEmpty = body === undefined || body.length === 0;
    this.#respond(true, isEmpty);
    this.writableEnded = true;
    if (isEmpty) this.stream.end();
    else this.stream.end(body);
    return this;
  }

  destroy(): void {
    this.stream.destroy();
  }

  #respond(isWhole: boolean, isEmpty: boolean): void {
    if (this.headersSent || this.stream.destroyed || this.stream.closed) return;
    this.headersSent = true;
    const { stream } = this;
    this.#fields[':status'] = this.statusCode;
    // A response that goes on may still get trailers.
    const waitForTrailers = this.#trailers !== undefined || !isWhole;
    stream.respond(this.#fields, { waitForTrailers, endStream: isEmpty && !waitForTrailers });
    if (waitForTrailers) stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers ?? {}));
  }
}

/**
 * The request and the response of a stream of HTTP/2 without those that Node makes for its `request` event, which put a
 * second stream before the stream itself. They are typed as Node's, of which they have what REST and RPCs use.
 */
export function exchangeOf(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  rawHeaders: string[],
): { req: Http2ServerRequest; res: Http2ServerResponse } {
  // Its end tells; without a listener the error of a stream that the client resets would end the process.
  stream.on('error', () => {});
  const req = new StreamRequest(stream, headers, rawHeaders) as unknown as Http2ServerRequest;
  const res = new StreamResponse(stream) as unknown as Http2ServerResponse;
  return { req, res };
}
