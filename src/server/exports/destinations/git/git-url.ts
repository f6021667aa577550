/** Which repositories may be named as destinations, and with which secrets. */

import type { DestinationMembers } from '../destination.js';
import { findHostKeyProblem, findSshKeyProblem } from './ssh-key.js';

/** Resolves all addresses of a name. Rejects if there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** A repository's URL as git is given it. The host is a plain name, or a literal, in brackets if IPv6. */
export type GitUrl = {
  readonly scheme: 'http' | 'https' | 'ssh';
  readonly host: string;
  readonly port: number;
  readonly href: string;
};

const DEFAULT_PORTS = { http: 80, https: 443, ssh: 22 };
const FIRST_UNPRIVILEGED_PORT = 1024;

// No trailing dot: curl and the pinned addresses could differ about whether it is part of the name.
const HOST = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]`;
const PATH = String.raw`(?:/(?!\.\.?(?:/|$))(?:[A-Za-z0-9._~+@=,!$&()*:-]|%[2-9A-Fa-f][0-9A-Fa-f])*)+`;
const URL_PATTERN = new RegExp(
  `^(?<scheme>https?|ssh)://(?:(?<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?(?<host>${HOST})(?::(?<port>[0-9]{1,5}))?(?<path>${PATH})$`,
);

/**
 * Parses `https://host[:port]/path` or `ssh://user@host[:port]/path`. Returns its problem as a string if it is spelt in any
 * other way, or has a transport or port that the rules forbid. Resolves nothing.
 */
export function parseGitUrl({ allowInsecure }: { allowInsecure: boolean }, text: string): GitUrl | string {
  const scheme = /^[a-z][a-z0-9+.-]*(?=:\/\/)/.exec(text)?.[0];
  if (scheme !== 'https' && scheme !== 'ssh' && !(allowInsecure && scheme === 'http'))
    return 'the url must be https:// or ssh://';
  const parts = URL_PATTERN.exec(text)?.groups;
  const credentials = /^[a-z]+:\/\/[^/]*:[^/]*@|^https?:\/\/[^/]*@/.test(text);
  if (credentials) return 'the url must not hold credentials';
  const host = parts && normaliseHost(parts.host!);
  if (parts === undefined || host === undefined)
    return `the url must be ${scheme}://, a host and a path, without spaces, query or fragment`;
  if (scheme === 'ssh' && parts.user === undefined) return 'the url must name the user: ssh://git@host/path';
  const port = parts.port === undefined ? DEFAULT_PORTS[scheme] : Number(parts.port);
  const isUsual = port === DEFAULT_PORTS[scheme] || port >= FIRST_UNPRIVILEGED_PORT;
  if (port < 1 || port > 65_535 || !(isUsual || allowInsecure))
    return `the port must be ${DEFAULT_PORTS[scheme]} or above 1023`;
  const user = parts.user === undefined ? '' : `${parts.user}@`;
  return { scheme, host, port, href: `${scheme}://${user}${host}:${port}${parts.path}` };
}

/** Normalises an IPv4 address, so that the checked address is the one that is called. */
function normaliseHost(host: string): string | undefined {
  return URL.canParse(`http://${host}/`) ? new URL(`http://${host}/`).hostname : undefined;
}

/** The problem of the secrets and the branch of a destination with this url; undefined if there is none. */
export function findMemberProblem(
  { scheme }: Pick<GitUrl, 'scheme'>,
  { branch, token, sshKey, hostKey }: DestinationMembers,
): string | undefined {
  // git keeps the ending for its lock files.
  if (/\.lock(?:\/|$)/.test(branch)) return 'no part of the branch may end in .lock';
  if (scheme === 'ssh') {
    if (token !== '') return 'an ssh url is used with ssh_key and host_key, not with token';
    if (sshKey === '' || hostKey === '') return 'an ssh url needs ssh_key and host_key';
    return findSshKeyProblem(sshKey) ?? findHostKeyProblem(hostKey);
  }
  if (sshKey !== '' || hostKey !== '')
    return 'an https url is used with token, not with ssh_key and host_key';
  return token === '' ? 'an https url needs token' : undefined;
}
