import type { JsonObject } from '@bufbuild/protobuf';
import { type Cli, UsageError } from '../../cli.js';
import { gitResource, gitRevision, withVcsUrl } from './git-metadata.js';
import { type GitState, readGitState } from './git-state.js';

/** The flag that has the commit recorded. */
export type GitFlags = { readonly git?: boolean };

/** The state of the working folder, if --git is given. Throws as readGitState does. */
export async function readGit({ env }: Cli, { git }: GitFlags): Promise<GitState | undefined> {
  return git ? await readGitState(env, '.') : undefined;
}

/**
 * The metadata with the state of the working tree in its schema's own place: `vcs_url` of a purl, `configuration` of a test
 * result, `revision` of an evaluation or a snapshot. Throws UsageError if the schema has none, or a log has recorded another.
 */
export function withGit(metadata: JsonObject, state: GitState | undefined): JsonObject {
  if (state === undefined) return metadata;
  const { schema, purl, configuration = [] } = metadata;
  if (schema === 'purl' && typeof purl === 'string') return { ...metadata, purl: withVcsUrl(purl, state) };
  if (schema === 'intoto.test_result.v0.1' && Array.isArray(configuration))
    return { ...metadata, configuration: [...configuration, gitResource(state)] };
  if (schema === 'evaluation.v1' || schema === 'ui_snapshot.v1') {
    if (metadata.revision !== undefined)
      throw new UsageError('--git: the log has recorded the revision that was run');
    return { ...metadata, revision: gitRevision(state) };
  }
  throw new UsageError(`--git has no place in metadata of schema ${String(schema)}`);
}
