/**
 * Which addresses of others may be called. A customer names a url, and must not reach through us what only we reach: so
 * it is looked at when it is saved, and each address again when it is connected to, as names can be re-bound.
 */
import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';

/** Whether http, any port and any address may be called: for an installation on a developer's own machine only. */
export type DestinationRules = { allowInsecure: boolean };

/** Finds every address of a name; rejects when it has none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

const HTTPS_PORT = 443;
const FIRST_UNPRIVILEGED_PORT = 1024;
const CONNECT_TIMEOUT_MS = 10_000;

/** Why a url may not be called, in a sentence for its owner; undefined when it may. */
export async function findDestinationProblem(
  { allowInsecure, resolve }: DestinationRules & { resolve: Resolve },
  text: string,
): Promise<string | undefined> {
  if (!URL.canParse(text)) return 'the url is not a url';
  const url = new URL(text);
  const problem = findSpellingProblem(url, allowInsecure);
  if (problem !== undefined || allowInsecure) return problem;
  const hostname = bareHostname(url.hostname);
  const addresses = isIP(hostname) ? [hostname] : await resolve(hostname).catch(() => []);
  if (addresses.length === 0) return `the host ${hostname} has no address`;
  return addresses.every(isPublicAddress) ? undefined : `the host ${hostname} is not a public address`;
}

function findSpellingProblem(url: URL, allowInsecure: boolean): string | undefined {
  if (url.protocol !== 'https:' && !(allowInsecure && url.protocol === 'http:'))
    return 'the url must be https';
  if (url.username !== '' || url.password !== '') return 'the url must not hold credentials';
  if (url.hash !== '') return 'the url must not hold a fragment';
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  const isUsual = port === HTTPS_PORT || port >= FIRST_UNPRIVILEGED_PORT;
  return isUsual || allowInsecure ? undefined : 'the port must be 443 or above 1023';
}

/** Whether an address is one of the public internet: not loopback, private, link-local, translated or reserved. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast';
}

/** Every address that the system's resolver finds. */
export function resolveByDns(hostname: string): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    dnsLookup(hostname, { all: true }, (error, found) =>
      error ? reject(error) : resolve(found.map(({ address }) => address)),
    );
  });
}

/** Opens connections for undici, and only to addresses that may be called, whatever a name resolved to before. */
export function guardedConnector({ allowInsecure }: DestinationRules): buildConnector.connector {
  if (allowInsecure) return buildConnector({ timeout: CONNECT_TIMEOUT_MS });
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    lookup: lookupPublic,
  } as buildConnector.BuildOptions);
  return (options, callback) => {
    const hostname = bareHostname(options.hostname);
    // A literal is connected to without a look-up.
    if (isIP(hostname) && !isPublicAddress(hostname)) callback(notPublic(hostname), null);
    else connect(options, callback);
  };
}

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

function lookupPublic(hostname: string, options: LookupOptions, callback: LookupCallback): void {
  dnsLookup(hostname, { ...options, all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error) callback(error, []);
    else if (first === undefined || !found.every(({ address }) => isPublicAddress(address)))
      callback(notPublic(hostname), []);
    else if (options.all) callback(null, found);
    else callback(null, first.address, first.family);
  });
}

function notPublic(hostname: string): Error {
  return new Error(`the host ${hostname} is not a public address`);
}

function bareHostname(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
