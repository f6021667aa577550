/** The artifact to verify: a file or a digest. */
import { hashArtifact } from '../../client/hash.js';
import { type Cli, UsageError } from '../cli.js';
import { openProgress } from '../output/progress.js';
import { inputFileSize } from './input-file.js';

/** Parses `sha256:` and 64 hex digits, in lower case. Returns undefined for a file. Throws UsageError. */
export function parseDigestArgument(file: string): string | undefined {
  if (!file.startsWith('sha256:')) return undefined;
  const digest = file.slice('sha256:'.length);
  if (!/^[0-9a-fA-F]{64}$/.test(digest)) throw new UsageError('sha256: is not followed by 64 hex digits');
  return digest.toLowerCase();
}

/** The SHA-256 of the artifact in hex. Hashes a file in chunks and shows progress on a terminal. */
export async function artifactSha256({ stderr, now }: Cli, file: string): Promise<string> {
  const given = parseDigestArgument(file);
  if (given !== undefined) return given;
  const size = await inputFileSize(file);
  const progress = openProgress({ output: stderr, now: () => now().getTime() }, 'hashing', size);
  const digest = await hashArtifact(file, { onBytes: progress.add });
  progress.clear();
  return digest;
}
