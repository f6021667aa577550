/**
 * The SSRF guard for outbound URLs that customers name. A URL is checked when it is saved, and each address again on
 * connect, because DNS names can be rebound.
 */
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';

/** `allowInsecure` permits http, any port and loopback, for development only. */
type DestinationRules = { allowInsecure: boolean };

/** Resolves all addresses of a name. Rejects if there are none. */
type Resolve = (hostname: string) => Promise<readonly string[]>;

const HTTPS_PORT = 443;
const FIRST_UNPRIVILEGED_PORT = 1024;
const CONNECT_TIMEOUT_MS = 10_000;
/** Connect timeout per address; Node's default of 250 ms is shorter than a round trip around the world. */
const ADDRESS_TIMEOUT_MS = 3_000;
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/**
 * Explains to its owner why a URL is forbidden; undefined if it is allowed. With `allowInsecure` names are resolved on
 * connect only, because a developer's machine may be offline.
 */
export async function findDestinationProblem(
  { allowInsecure, resolve }: DestinationRules & { resolve: Resolve },
  text: string,
): Promise<string | undefined> {
  if (!URL.canParse(text)) return 'the url is not a url';
  const url = new URL(text);
  const problem = findSyntaxProblem(text, url, allowInsecure);
  if (problem !== undefined) return problem;
  const hostname = bareHostname(url.hostname);
  const isLiteral = isIP(hostname) !== 0;
  if (allowInsecure && !isLiteral) return undefined;
  const addresses = isLiteral ? [hostname] : await resolve(hostname).catch(() => []);
  if (addresses.length === 0) return `the host ${hostname} has no address`;
  const mayCall = addresses.every((address) => isCallable(address, allowInsecure));
  return mayCall ? undefined : notPublic(hostname).message;
}

function findSyntaxProblem(text: string, url: URL, allowInsecure: boolean): string | undefined {
  const problem = findSchemeProblem(url, allowInsecure);
  if (problem !== undefined) return problem;
  if (url.username !== '' || url.password !== '') return 'the url must not hold credentials';
  if (url.hash !== '') return 'the url must not hold a fragment';
  // URLs that parsers would correct silently are rejected, so that the stored URL is the one called.
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

/** A public address that only virtual machines reach: Azure's WireServer. */
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
 * Resolves all addresses of a name by DNS. Not with getaddrinfo, which blocks one of libuv's four threads for as long as
 * a slow name server likes. `localhost` is this machine (RFC 6761, section 6.3).
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

/** `ca` replaces Node's certificate authorities. */
export type GuardOptions = DestinationRules & { resolve?: Resolve; ca?: string };

/**
 * Creates a connector for undici that connects to allowed addresses only. It resolves the name for each connection, checks
 * every address and connects to one of them. It checks scheme and port again, because the rules may have become stricter
 * since the URL was saved.
 */
export function guardedConnector(guard: GuardOptions): buildConnector.connector {
  // undici's type omits options that it passes to net.connect.
  const options = { timeout: CONNECT_TIMEOUT_MS, ...connectOptions(guard) } as buildConnector.BuildOptions;
  const connect = buildConnector(options);
  return (target, callback) => {
    const problem = findConnectProblem(guard, target);
    if (problem !== undefined) callback(problem, null);
    else connect(target, callback);
  };
}

/** Creates agents for node:http and node:https that connect as `guardedConnector` does, but without a timeout. */
export function guardedAgents(guard: GuardOptions): { httpAgent: http.Agent; httpsAgent: https.Agent } {
  const options = { keepAlive: true, ...connectOptions(guard) };
  return {
    httpAgent: guardAgent(new http.Agent(options), 'http:', guard),
    httpsAgent: guardAgent(new https.Agent(options), 'https:', guard),
  };
}

function guardAgent<A extends http.Agent>(agent: A, protocol: string, guard: GuardOptions): A {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const target = { protocol, hostname: options.host ?? '', port: String(options.port ?? '') };
    const problem = findConnectProblem(guard, target);
    if (problem === undefined) return connect(options, callback);
    // Node's type requires a stream beside an error.
    (callback as ((error: Error) => void) | undefined)?.(problem);
    return undefined;
  };
  return agent;
}

function connectOptions({ allowInsecure, resolve = resolveByDns, ca }: GuardOptions) {
  return {
    autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS,
    lookup: guardedLookup({ allowInsecure, resolve }),
    ...(ca !== undefined && { ca }),
  };
}

function findConnectProblem(
  { allowInsecure }: DestinationRules,
  target: { protocol: string; hostname: string; port: string },
): Error | undefined {
  const problem = findSchemeProblem(target, allowInsecure);
  if (problem !== undefined) return new Error(problem);
  const hostname = bareHostname(target.hostname);
  // A literal is connected to without a look-up.
  return isIP(hostname) && !isCallable(hostname, allowInsecure) ? notPublic(hostname) : undefined;
}

/**
 * The addresses that a host may be called at: its own if it is a literal, else what its name resolves to. Rejects if it
 * has none, or if the rules forbid one of them.
 */
export async function findCallableAddresses(
  { allowInsecure, resolve = resolveByDns }: DestinationRules & { resolve?: Resolve },
  hostname: string,
): Promise<readonly string[]> {
  const host = bareHostname(hostname);
  const addresses = isIP(host) ? [host] : await resolve(host);
  const mayCall = addresses.every((address) => isCallable(address, allowInsecure));
  if (addresses.length === 0 || !mayCall) throw notPublic(host);
  return addresses;
}

function guardedLookup(rules: DestinationRules & { resolve: Resolve }): LookupFunction {
  const find = async (hostname: string): Promise<LookupAddress[]> => {
    const addresses = await findCallableAddresses(rules, hostname);
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
