/** How a remote is reached: its addresses, checked on each connect and pinned, and the credentials for it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { findCallableAddresses } from '../../../net/destination.js';
import { DestinationError, type DestinationMembers } from '../destination.js';
import type { GitSettings } from './environment.js';
import type { GitUrl, Resolve } from './git-url.js';
import { normaliseSshKey } from './ssh-key.js';

/** The environment of a git command that calls the remote, beside the common one. */
export type Connection = {
  readonly settings: GitSettings;
  readonly variables: Readonly<Record<string, string>>;
};

export type Access = {
  /** Every way to reach the remote now, to be tried in order. Rejects with `DestinationError` if none is allowed. */
  connections(): Promise<readonly Connection[]>;
  /** Secrets, which no error may contain. */
  readonly secrets: readonly string[];
};

type AccessOptions = {
  /** For files with secrets; only this user can enter it. */
  readonly directory: string;
  readonly url: GitUrl;
  readonly allowInsecure: boolean;
  readonly resolve?: Resolve | undefined;
  /** PEM file of certificate authorities that are trusted beside those of Node. */
  readonly caFile?: string | undefined;
  readonly stallMs: number;
};

type Secrets = Pick<DestinationMembers, 'token' | 'sshKey' | 'hostKey'>;

/** The name of the server's key for all its addresses. */
const KNOWN_HOST = 'destination';
const CONNECT_TIMEOUT_S = 10;
const MAX_ADDRESSES = 4;

/** Writes the files that the transport needs. */
export async function openAccess(options: AccessOptions, secrets: Secrets): Promise<Access> {
  return options.url.scheme === 'ssh' ? openSsh(options, secrets) : openHttps(options, secrets);
}

/**
 * git trusts the authorities that Node trusts, and not the system's: curl would read each of those from a file of its own
 * for every connection, which takes 0.1 s.
 */
async function openHttps(options: AccessOptions, { token }: Secrets): Promise<Access> {
  const { directory, url, caFile, stallMs } = options;
  const authorities = join(directory, 'authorities.pem');
  const more = caFile === undefined ? '' : await readAuthorities(caFile);
  const none = join(directory, 'no-authorities');
  await mkdir(none);
  await writeFile(authorities, `${rootCertificates.join('\n')}\n${more}`, { mode: 0o600 });
  const basic = Buffer.from(`x-access-token:${token}`).toString('base64');
  const connections = async () => {
    const addresses = (await findAddresses(options)).map(bracket).join(',');
    const isLiteral = isIP(unbracket(url.host)) !== 0;
    const pin: Record<string, string> = isLiteral
      ? {}
      : { 'http.curloptResolve': `${url.host}:${url.port}:${addresses}` };
    const settings = {
      'remote.origin.url': url.href,
      'http.sslCAInfo': authorities,
      'http.sslCAPath': none,
      'http.lowSpeedTime': String(Math.ceil(stallMs / 1000)),
      [`http.${url.scheme}://${url.host}:${url.port}/.extraHeader`]: `Authorization: Basic ${basic}`,
      ...pin,
    };
    return [{ settings, variables: {} }];
  };
  return { connections, secrets: [basic, token] };
}

async function readAuthorities(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    const message = `the service's file of certificate authorities cannot be read (${cause.code})`;
    throw new DestinationError(message, { cause });
  });
}

async function openSsh(options: AccessOptions, { sshKey, hostKey }: Secrets): Promise<Access> {
  const { directory, url } = options;
  const configFile = join(directory, 'ssh_config');
  const files = { key: join(directory, 'key'), knownHosts: join(directory, 'known_hosts') };
  await writeFile(files.key, normaliseSshKey(sshKey), { mode: 0o600 });
  await writeFile(files.knownHosts, `${KNOWN_HOST} ${hostKey}\n`, { mode: 0o600 });
  await writeFile(configFile, sshConfig(files), { mode: 0o600 });
  const connections = async () =>
    (await findAddresses(options)).map((address) => ({
      settings: { 'remote.origin.url': url.href, 'ssh.variant': 'ssh' },
      variables: { GIT_SSH_COMMAND: `ssh -F ${quote(configFile)} -o HostName=${address}` },
    }));
  return { connections, secrets: sshKey.split('\n').filter((line) => line.length > 16) };
}

/** The only configuration that ssh reads. The address, which it would else resolve itself, comes with each command. */
function sshConfig({ key, knownHosts }: { key: string; knownHosts: string }): string {
  const options = {
    IdentityFile: quoteForSsh(key),
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    UserKnownHostsFile: quoteForSsh(knownHosts),
    GlobalKnownHostsFile: '/dev/null',
    HostKeyAlias: KNOWN_HOST,
    CheckHostIP: 'no',
    StrictHostKeyChecking: 'yes',
    UpdateHostKeys: 'no',
    VerifyHostKeyDNS: 'no',
    KnownHostsCommand: 'none',
    BatchMode: 'yes',
    PreferredAuthentications: 'publickey',
    CanonicalizeHostname: 'no',
    ProxyCommand: 'none',
    ControlMaster: 'no',
    ControlPath: 'none',
    PermitLocalCommand: 'no',
    ClearAllForwardings: 'yes',
    ForwardAgent: 'no',
    ForwardX11: 'no',
    EscapeChar: 'none',
    ConnectTimeout: String(CONNECT_TIMEOUT_S),
    ServerAliveInterval: '10',
    ServerAliveCountMax: '3',
    LogLevel: 'ERROR',
  };
  const lines = Object.entries(options).map(([name, value]) => `  ${name} ${value}\n`);
  return `Host *\n${lines.join('')}`;
}

async function findAddresses({ url, allowInsecure, resolve }: AccessOptions): Promise<readonly string[]> {
  const rules = { allowInsecure, ...(resolve !== undefined && { resolve }) };
  try {
    return (await findCallableAddresses(rules, url.host)).slice(0, MAX_ADDRESSES);
  } catch (cause) {
    const hasCode = (cause as NodeJS.ErrnoException).code !== undefined;
    const message = hasCode ? `the host ${url.host} has no address` : (cause as Error).message;
    throw new DestinationError(message, { cause });
  }
}

function bracket(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

function unbracket(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** For the shell by which git runs ssh. */
function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}

/** For a path in ssh's configuration, in which `%` starts a token. */
function quoteForSsh(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}
