/** Where a run can be looked at. */
import type { Env } from '../../config/settings.js';
import { UsageError } from '../cli.js';

/** Help text of the flag. */
export const RUN_URL_HELP = "URL of the run; `ci`: that of GitHub Actions', GitLab's or Jenkins' variables";

/**
 * The URL that --run-url gives; of `ci` that of the CI system's job, by its variables. Throws UsageError if there is none, it
 * is not http or https, or it has a password.
 */
export function readRunUrl(env: Env, given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  const text = given === 'ci' ? ciUrl(env) : given;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError('--run-url is not a URL of http or https');
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--run-url has a user or a password in it');
  return url.href;
}

function ciUrl(env: Env): string {
  const {
    GITHUB_SERVER_URL: server,
    GITHUB_REPOSITORY: repository,
    GITHUB_RUN_ID: run,
    GITHUB_RUN_ATTEMPT: attempt,
  } = env;
  const attempted = attempt === undefined ? '' : `/attempts/${attempt}`;
  if (server && repository && run) return `${server}/${repository}/actions/runs/${run}${attempted}`;
  const url = env.CI_JOB_URL || env.BUILD_URL;
  if (url) return url;
  throw new UsageError(
    '--run-url ci: there is no GITHUB_SERVER_URL with GITHUB_REPOSITORY and GITHUB_RUN_ID, no CI_JOB_URL and no BUILD_URL',
  );
}
