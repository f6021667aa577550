/** What metadata has of a run beside its tests. */
import type { JsonObject } from '@bufbuild/protobuf';
import { hashArtifact } from '../../client/hash.js';
import type { Cli } from '../cli.js';
import { inputFileSize } from '../input/input-file.js';
import { recordedName } from '../submit/recorded-name.js';
import type { StatedFile } from '../submit/statement.js';
import { gitResource } from './git/git-metadata.js';
import { type GitFlags, readGit } from './git/with-git.js';
import type { RunDetails } from './junit/test-result.js';
import { readRunUrl } from './run-url.js';

/** Flags that add to the metadata of a run. */
export type RunFlags = GitFlags & { runUrl?: string };

/**
 * Reads what configured a run: these files, with path and SHA-256, and the images, which are also returned by themselves, and with
 * --git the working tree; and where it can be looked at. Throws UsageError if a file cannot be read, or a flag has nothing to read.
 */
export async function describeRun(
  cli: Cli,
  files: readonly string[],
  flags: RunFlags,
  images: readonly StatedFile[] = [],
): Promise<RunDetails & { files: readonly StatedFile[] }> {
  const url = readRunUrl(cli.env, flags.runUrl);
  const hashed: StatedFile[] = [];
  for (const file of files) await inputFileSize(file);
  for (const file of files)
    hashed.push({ name: recordedName(file, process.cwd()), sha256: await hashArtifact(file) });
  hashed.push(...images.map(({ name, sha256 }) => ({ name, sha256 })));
  const configuration: JsonObject[] = hashed.map(({ name, sha256 }) => ({ name, digest: { sha256 } }));
  const git = await readGit(cli, flags);
  if (git !== undefined) configuration.push(gitResource(git));
  return { configuration, url, files: hashed };
}
