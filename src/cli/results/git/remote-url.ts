const SCHEMES = new Set(['http:', 'https:', 'ssh:', 'git:']);

/** `user@host:path`, as scp has it; one letter before the colon is a drive of Windows. */
const SCP = /^(?:[^@/\s]*@)?(?<host>\[[0-9a-fA-F:]+\]|[^@:/\s]{2,}):(?!:|\/\/)(?<path>.+)$/;

/**
 * The URL of a git remote without user, password, query and fragment, any of which can hold credentials. Returns undefined for
 * a local path and for schemes other than http, https, ssh and git.
 */
export function remoteUrl(remote: string): string | undefined {
  const { host, path } = SCP.exec(remote)?.groups ?? {};
  const text = host === undefined || path === undefined ? remote : `ssh://${host}/${path.replace(/^\//, '')}`;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (!SCHEMES.has(url.protocol) || url.hostname === '') return undefined;
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/$/, '')}`;
}
