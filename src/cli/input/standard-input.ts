import type { Cli } from '../cli.js';

/** Yields what standard input has, at least one piece: an input without any is an empty file. */
export async function* standardInput({ stdin }: Pick<Cli, 'stdin'>): AsyncGenerator<Uint8Array> {
  yield new Uint8Array();
  for await (const piece of stdin) yield typeof piece === 'string' ? Buffer.from(piece) : piece;
}
