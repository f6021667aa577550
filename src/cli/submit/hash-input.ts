import { hashArtifact } from '../../client/hash.js';
import type { Cli } from '../cli.js';
import { standardInput } from '../input/standard-input.js';
import type { Input } from './inputs.js';
import { STDIN } from './lines.js';

/** An input's SHA-256 in lower-case hex, or why it cannot be read. */
export type HashedInput = { readonly input: Input } & (
  | { readonly sha256: string }
  | { readonly error: unknown }
);

/** Hashes an input whose digest is not given. `onBytes` is called with the size of each chunk that is read. */
export async function hashInput(
  cli: Cli,
  input: Input,
  options: { onBytes: (bytes: number) => void; signal: AbortSignal },
): Promise<HashedInput> {
  const { label, sha256 } = input;
  if (sha256 !== undefined) return { input, sha256 };
  try {
    return { input, sha256: await hashArtifact(label === STDIN ? standardInput(cli) : label, options) };
  } catch (error) {
    return { input, error };
  }
}
