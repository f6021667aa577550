/** What metadata has of a run beside its tests. */
import type { JsonObject } from '@bufbuild/protobuf';
import { hashArtifact } from '../../client/hash.js';
import type { Cli } from '../cli.js';
import { inputFileSize } from '../input/input-file.js';
import { recordedName } from '../submit/recorded-name.js';
import { gitResource } from './git/git-metadata.js';
import { type GitFlags, readGit } from './git/with-git.js';
import type { RunDetails } from './junit/test-result.js';
import { readRunUrl } from './run-url.js';

/** Flags that add to the metadata of a run. */
export type RunFlags = GitFlags & { runUrl?: string };

/**
 * Reads what configured a run: these files, with path and SHA-256, and with --git the working tree; and where it can be looked
 * at. Throws UsageError if a file cannot be read, or a flag has nothing to read.
 */
export async function describeRun(cli: Cli, files: readonly string[], flags: RunFlags): Promise<RunDetails> {
  const url = readRunUrl(cli.env, flags.runUrl);
  const configuration: JsonObject[] = [];
  for (const file of files) await inputFileSize(file);
  for (const file of files)
    configuration.push({
      name: recordedName(file, process.cwd()),
      digest: { sha256: await hashArtifact(file) },
    });
  const git = await readGit(cli, flags);
  if (git !== undefined) configuration.push(gitResource(git));
  return { configuration, url };
}
