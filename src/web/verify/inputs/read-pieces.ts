/**
 * Yields a file in pieces, between which the page does other things: a stream has the next piece at once, and the page stands
 * still. Throws the signal's reason, and what the browser throws.
 */
export async function* readPieces(
  file: Blob,
  signal: AbortSignal,
  pieceBytes = 1024 * 1024,
): AsyncGenerator<Uint8Array> {
  let at = 0;
  // An empty file is one empty piece.
  do {
    signal.throwIfAborted();
    yield new Uint8Array(await file.slice(at, at + pieceBytes).arrayBuffer());
    at += pieceBytes;
  } while (at < file.size);
}
