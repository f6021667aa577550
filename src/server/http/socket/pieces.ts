import type { ServerResponse } from 'node:http';

/**
 * Long bodies are written in pieces of so many bytes, each once the last was taken: so it shows whether the client reads.
 */
const PIECE_BYTES = 64 * 1024;

/** Ends an answer with a body. */
export function endInPieces(res: ServerResponse, body: Uint8Array | undefined): void {
  if (body === undefined || body.length <= PIECE_BYTES) {
    res.end(body);
    return;
  }
  let at = 0;
  const goOn = () => {
    for (;;) {
      const piece = body.subarray(at, at + PIECE_BYTES);
      at += PIECE_BYTES;
      if (at >= body.length) return void res.end(piece);
      if (!res.write(piece)) return void res.once('drain', goOn);
    }
  };
  goOn();
}

/** The same bytes in pieces, for who waits for each to be taken. */
export async function* inPieces(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) yield chunk.subarray(at, at + PIECE_BYTES);
  }
}
