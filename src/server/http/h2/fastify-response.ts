import { Writable } from 'node:stream';
import type { Http2Response } from './exchange.js';

type Value = string | readonly string[] | number;

/** The response of a route of Fastify, which writes to Node's: a Writable with the header methods of one. */
export class FastifyResponse extends Writable {
  readonly #res: Http2Response;

  constructor(res: Http2Response) {
    super();
    this.#res = res;
    res.once('close', () => this.destroy());
    // The client's end tells; it is no error of the route.
    this.on('error', () => {});
  }

  get statusCode(): number {
    return this.#res.statusCode;
  }

  set statusCode(status: number) {
    this.#res.statusCode = status;
  }

  get headersSent(): boolean {
    return this.#res.headersSent;
  }

  get socket(): Http2Response['socket'] {
    return this.#res.socket;
  }

  getHeader(name: string): Value | undefined {
    return this.#res.getHeader(name.toLowerCase());
  }

  hasHeader(name: string): boolean {
    return this.getHeader(name) !== undefined;
  }

  setHeader(name: string, value: Value): this {
    this.#res.setHeader(name.toLowerCase(), value);
    return this;
  }

  removeHeader(name: string): void {
    this.#res.removeHeader(name.toLowerCase());
  }

  writeHead(status: number, headers: Readonly<Record<string, Value | undefined>> = {}): this {
    this.#res.statusCode = status;
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) this.setHeader(name, value);
    }
    return this;
  }

  flushHeaders(): void {
    this.#res.flushHeaders();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.#res.write(chunk)) done();
    else this.#res.once('drain', done);
  }

  /** Whole responses go out with their header fields. */
  override _final(done: () => void): void {
    this.#res.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#res.writableEnded) this.#res.destroy();
    done(error);
  }
}
