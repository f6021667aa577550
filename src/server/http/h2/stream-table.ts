import { ConnectionError, DEFAULT_WINDOW_SIZE, Http2Code } from './protocol.js';
import { Http2Stream, type StreamOwner } from './stream.js';

/** Streams that we have reset and on which the client may not know of it yet. */
const MAX_RECENT_RESETS = 128;

/** The streams of a connection (RFC 9113, section 5.1): those that are open, and what is known of others. */
export class StreamTable {
  /** The highest id of a request so far. */
  lastStreamId = 0;
  readonly #open = new Map<number, Http2Stream>();
  readonly #recentResets = new Set<number>();
  #initialSendWindow = DEFAULT_WINDOW_SIZE;

  get size(): number {
    return this.#open.size;
  }

  find(streamId: number): Http2Stream | undefined {
    return this.#open.get(streamId);
  }

  all(): IterableIterator<Http2Stream> {
    return this.#open.values();
  }

  add(
    streamId: number,
    owner: StreamOwner,
    request: { isEnd: boolean; contentLength: number | undefined },
  ): Http2Stream {
    const windows = { send: this.#initialSendWindow, receive: DEFAULT_WINDOW_SIZE };
    const stream = new Http2Stream(streamId, owner, windows, request);
    this.#open.set(streamId, stream);
    return stream;
  }

  delete(streamId: number): void {
    this.#open.delete(streamId);
  }

  /** Changes the windows of all streams (section 6.9.2). Throws a ConnectionError if one becomes too large. */
  setInitialSendWindow(bytes: number): void {
    const change = bytes - this.#initialSendWindow;
    this.#initialSendWindow = bytes;
    for (const stream of this.#open.values()) {
      if (!stream.addSendWindow(change)) {
        throw new ConnectionError(Http2Code.FLOW_CONTROL_ERROR, 'a window beyond its maximum');
      }
      stream.sendMore();
    }
  }

  noteReset(streamId: number): void {
    this.#recentResets.add(streamId);
    if (this.#recentResets.size <= MAX_RECENT_RESETS) return;
    for (const oldest of this.#recentResets) {
      this.#recentResets.delete(oldest);
      return;
    }
  }

  wasReset(streamId: number): boolean {
    return this.#recentResets.has(streamId);
  }
}
