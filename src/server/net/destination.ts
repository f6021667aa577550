/**
 * Which addresses of others may be called. A customer names a url, and must not reach through us what only we reach: so
 * it is looked at when it is saved, and each address again when it is connected to, as names can be re-bound.
 */
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';

/** Whether http, any port and loopback may be called: for an installation on a developer's own machine only. */
export type DestinationRules = { allowInsecure: boolean };

/** Finds every address of a name; rejects when it has none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

const HTTPS_PORT = 443;
const FIRST_UNPRIVILEGED_PORT = 1024;
const CONNECT_TIMEOUT_MS = 10_000;
/** Of several addresses, how long each is tried; Node's own 250 ms is less than the way around the world takes. */
const ADDRESS_TIMEOUT_MS = 3_000;
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/**
 * Why a url may not be called, in a sentence for its owner; undefined when it may. Where `allowInsecure` is set a name
 * is resolved when it is connected to only: a developer's machine need not be on a network.
 */
export async function findDestinationProblem(
  { allowInsecure, resolve }: DestinationRules & { resolve: Resolve },
  text: string,
): Promise<string | undefined> {
  if (!URL.canParse(text)) return 'the url is not a url';
  const url = new URL(text);
  const problem = findSpellingProblem(text, url, allowInsecure);
  if (problem !== undefined) return problem;
  const hostname = bareHostname(url.hostname);
  const isLiteral = isIP(hostname) !== 0;
  if (allowInsecure && !isLiteral) return undefined;
  const addresses = isLiteral ? [hostname] : await resolve(hostname).catch(() => []);
  if (addresses.length === 0) return `the host ${hostname} has no address`;
  const mayCall = addresses.every((address) => isCallable(address, allowInsecure));
  return mayCall ? undefined : notPublic(hostname).message;
}

function findSpellingProblem(text: string, url: URL, allowInsecure: boolean): string | undefined {
  const problem = findSchemeProblem(url, allowInsecure);
  if (problem !== undefined) return problem;
  if (url.username !== '' || url.password !== '') return 'the url must not hold credentials';
  if (url.hash !== '') return 'the url must not hold a fragment';
  // What parsers of urls make good in silence is told instead, so that what is stored is what is called.
  if (!/^https?:\/\/[^\s\\/][^\s\\]*$/i.test(text))
    return 'the url must be https://, a host and a path, without spaces';
  return undefined;
}

function findSchemeProblem(
  url: { protocol: string; port: string },
  allowInsecure: boolean,
): string | undefined {
  if (url.protocol !== 'https:' && !(allowInsecure && url.protocol === 'http:'))
    return 'the url must be https';
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  const isUsual = port === HTTPS_PORT || port >= FIRST_UNPRIVILEGED_PORT;
  return isUsual || allowInsecure ? undefined : 'the port must be 443 or above 1023';
}

/** All IPv6 addresses of the public internet are in here (RFC 4291, section 2.4; IANA's allocations). */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** Of the public range, and yet the platform's own, which answers virtual machines only: Azure's WireServer. */
const PLATFORM_ADDRESSES: readonly string[] = ['168.63.129.16'];

/**
 * Whether an address is one of the public internet: not loopback, private, link-local, shared, multicast, reserved or
 * a cloud's own, and no IPv6 address that stands for an IPv4 one (mapped, translated, 6to4, Teredo) or names a zone.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || address.includes('%') || PLATFORM_ADDRESSES.includes(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv4 || parsed.match(GLOBAL_UNICAST_V6);
}

function isCallable(address: string, allowInsecure: boolean): boolean {
  return isPublicAddress(address) || (allowInsecure && ipaddr.process(address).range() === 'loopback');
}

/**
 * Every address of a name in DNS. Not by the system's resolver, which takes one of the process's few threads for as
 * long as somebody's slow name server likes. `localhost` is this machine (RFC 6761, section 6.3).
 */
export async function resolveByDns(hostname: string): Promise<readonly string[]> {
  if (/(?:^|\.)localhost\.?$/.test(hostname)) return ['127.0.0.1', '::1'];
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const [first] = answers;
  if (addresses.length === 0 && first.status === 'rejected') throw first.reason;
  return addresses;
}

/** What connections are opened with; `ca` in place of the certificate authorities that Node trusts. */
export type ConnectorOptions = DestinationRules & { resolve?: Resolve; ca?: string };

/**
 * Opens connections for undici, and only to addresses that may be called: a name is resolved for each connection, every
 * address that it has is looked at, and the connection goes to one of these. Scheme and port are looked at again too: the
 * rules may have become stricter since the url was saved.
 */
export function guardedConnector({
  allowInsecure,
  resolve = resolveByDns,
  ca,
}: ConnectorOptions): buildConnector.connector {
  const mayCall = (address: string) => isCallable(address, allowInsecure);
  const options = {
    timeout: CONNECT_TIMEOUT_MS,
    autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS,
    lookup: guardedLookup(resolve, mayCall),
    ...(ca !== undefined && { ca }),
  };
  // undici's type leaves out what it passes on to net.connect.
  const connect = buildConnector(options as buildConnector.BuildOptions);
  return (target, callback) => {
    const hostname = bareHostname(target.hostname);
    const problem = findSchemeProblem(target, allowInsecure);
    if (problem !== undefined) callback(new Error(problem), null);
    // A literal is connected to without a look-up.
    else if (isIP(hostname) && !mayCall(hostname)) callback(notPublic(hostname), null);
    else connect(target, callback);
  };
}

function guardedLookup(resolve: Resolve, mayCall: (address: string) => boolean): LookupFunction {
  const find = async (hostname: string): Promise<LookupAddress[]> => {
    const addresses = await resolve(hostname);
    if (addresses.length === 0 || !addresses.every(mayCall)) throw notPublic(hostname);
    return addresses.map((address) => ({ address, family: isIP(address) }));
  };
  return (hostname, options, callback) => {
    find(hostname).then(
      (found) => {
        const [first] = found;
        if (options.all) callback(null, found);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

function notPublic(hostname: string): Error {
  return new Error(`the host ${hostname} is not a public address`);
}

function bareHostname(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
