/** Where metadata has the state of the working tree. */
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import type { GitState } from './git-state.js';

/**
 * The state as a resource descriptor of in-toto: `uri` is remote and commit, `digest` the commit, `annotations` branch, `dirty`
 * and `untracked`.
 */
export function gitResource(state: GitState): JsonObject {
  const { commit, branch, dirty, untracked } = state;
  const uri = vcsUrl(state);
  return {
    name: 'git',
    ...(uri !== undefined && { uri }),
    digest: { gitCommit: commit },
    annotations: { ...(branch !== undefined && { branch }), dirty, untracked },
  };
}

/** The state as the `revision` of an evaluation or a snapshot. */
export function gitRevision({ remote, commit, dirty }: GitState): JsonObject {
  return { type: 'git', ...(remote !== undefined && { origin: remote }), commit, dirty };
}

/**
 * The purl with remote and commit as its qualifier `vcs_url`; the rest stays as it is written. Throws UsageError if there is no
 * remote, or it has a `vcs_url`.
 */
export function withVcsUrl(purl: string, state: GitState): string {
  const uri = vcsUrl(state);
  if (uri === undefined)
    throw new UsageError(
      '--git: the repository has no remote origin with a URL that others can reach, for vcs_url',
    );
  const [, path = '', query = '', subpath = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(purl) ?? [];
  const qualifiers = query.split('&').filter((each) => each !== '');
  if (qualifiers.some((each) => each.startsWith('vcs_url=')))
    throw new UsageError('--git: the purl has a vcs_url already');
  const all = [...qualifiers, `vcs_url=${encodeURIComponent(uri)}`].sort();
  return `${path}?${all.join('&')}${subpath}`;
}

/** As SPDX and package URLs have it: `git+https://host/path@commit`. */
function vcsUrl({ remote, commit }: GitState): string | undefined {
  if (remote === undefined) return undefined;
  return `${remote.startsWith('git:') ? '' : 'git+'}${remote}@${commit}`;
}
