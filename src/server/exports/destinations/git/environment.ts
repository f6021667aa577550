/**
 * The environment of git's processes. It is built from nothing, so that no configuration, credential, hook, filter or
 * program of this machine or of a remote takes part. All settings are in environment variables: arguments are visible to
 * every user of the machine, and the local repository's configuration is a file.
 */
import { join } from 'node:path';
import type { GitUrl } from './git-url.js';

/** Where `git` and `ssh` are looked for by a service that has no PATH. */
export const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin';

/** Settings of git by name, as in `git config`. */
export type GitSettings = Readonly<Record<string, string>>;

const SETTINGS: GitSettings = {
  'core.hooksPath': '/dev/null',
  'core.attributesFile': '/dev/null',
  'core.excludesFile': '/dev/null',
  'core.fsmonitor': 'false',
  'core.logAllRefUpdates': 'false',
  // Larger blobs are streamed, not held in git's memory.
  'core.bigFileThreshold': '1m',
  'credential.helper': '',
  'fetch.recurseSubmodules': 'false',
  'fetch.writeCommitGraph': 'false',
  'fastimport.unpackLimit': '0',
  'gc.auto': '0',
  'gc.autoDetach': 'false',
  'maintenance.auto': 'false',
  'http.followRedirects': 'false',
  'http.proxy': '',
  'http.sslVerify': 'true',
  'http.lowSpeedLimit': '1',
  // Large pushes over HTTP/2 fail behind some servers.
  'http.version': 'HTTP/1.1',
  'core.packedGitLimit': '256m',
  'core.packedGitWindowSize': '32m',
  'pack.threads': '1',
  'pack.window': '0',
  'protocol.version': '2',
  'push.gpgSign': 'false',
  'push.recurseSubmodules': 'no',
  'transfer.bundleURI': 'false',
  'transfer.fsckObjects': 'true',
};

/**
 * The environment of a git process whose temporary files are in `directory`.
 *
 * @param path the directories in which programs are looked for
 * @param settings in addition to the fixed ones; may be secret
 */
export function gitEnvironment(
  { directory, path, scheme }: { directory: string; path: string; scheme: GitUrl['scheme'] },
  settings: GitSettings,
): Record<string, string> {
  return {
    PATH: path,
    HOME: join(directory, 'home'),
    XDG_CONFIG_HOME: join(directory, 'home'),
    TMPDIR: directory,
    LC_ALL: 'C',
    TZ: 'UTC',
    GIT_DIR: join(directory, 'repository'),
    GIT_ALLOW_PROTOCOL: scheme,
    GIT_ASKPASS: '',
    SSH_ASKPASS: '',
    SSH_ASKPASS_REQUIRE: 'never',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_TERMINAL_PROMPT: '0',
    ...settingsAsVariables({ ...SETTINGS, ...settings }),
  };
}

function settingsAsVariables(settings: GitSettings): Record<string, string> {
  const entries = Object.entries(settings);
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(variables) };
}
