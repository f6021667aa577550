/** A witness of kind `rfc3161`: a time-stamping authority. */
import { resolve } from 'node:path';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { certificateChain } from '../certificate-chain.js';
import { InvalidValue } from '../invalid-value.js';
import { findBoolean, findText, reportUnknownMembers, requireText, requireTexts } from '../members.js';
import { readSettingFile } from '../setting-files.js';
import { oneOf, outboundUrl, plainText } from '../setting-types.js';
import type { SettingType } from '../settings.js';
import {
  COMMON_MEMBERS,
  type CommonWitnessConfig,
  findOperator,
  readCommon,
  type WitnessEntry,
} from './entry.js';

/** A time-stamping authority (RFC 3161). */
export type Rfc3161Config = CommonWitnessConfig & {
  readonly kind: WitnessKind.RFC3161;
  readonly url: string;
  /** Who runs it. */
  readonly operator: string;
  /** The certificate chains that it may sign under, each in PEM, leaf first. */
  readonly chainsPem: readonly (readonly string[])[];
  /** The required policy of its time stamps, as a dotted object identifier. */
  readonly policyOid: string | undefined;
  /** The hash of the message imprint. */
  readonly hash: 'sha256' | 'sha384' | 'sha512';
  /** Headers of each request. May hold secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it stamps the signatures of submissions too. */
  readonly stampSignatures: boolean;
};

const MEMBERS = [
  ...COMMON_MEMBERS,
  'url',
  'operator',
  'chain_file',
  'chain_pem',
  'policy_oid',
  'hash',
  'headers',
  'username',
  'password',
  'stamp_signatures',
];

/** The chain in use, the next one, and further chains of an authority with several signers. */
const MAX_CHAINS = 4;
const MAX_HEADERS = 20;

const objectIdentifier: SettingType<string> = {
  expected: 'a dotted object identifier, such as 1.3.6.1.4.1.13762.3',
  parse: (text) => {
    if (text.length > 128 || !/^[0-2](\.(0|[1-9]\d{0,38}))+$/.test(text)) throw new InvalidValue();
    return text;
  },
};

/** A header value or a part of a user name and password. */
const credential: SettingType<string> = { ...plainText(4_096), secret: true };

/** Reads the members of a time-stamping authority. */
export function readRfc3161(entry: WitnessEntry): Rfc3161Config {
  reportUnknownMembers(entry, MEMBERS);
  const url = requireText(entry, 'url', outboundUrl);
  return {
    ...readCommon(entry),
    kind: WitnessKind.RFC3161,
    url,
    operator: findOperator(entry) ?? hostOf(url),
    chainsPem: readChains(entry),
    policyOid: findText(entry, 'policy_oid', objectIdentifier),
    hash: findText(entry, 'hash', oneOf('sha256', 'sha384', 'sha512')) ?? 'sha256',
    headers: readHeaders(entry),
    stampSignatures: findBoolean(entry, 'stamp_signatures') ?? false,
  };
}

/** `chain_file` and `chain_pem` are one chain or an array of them. */
function readChains(entry: WitnessEntry): readonly string[][] {
  const { at, members, baseDir, report } = entry;
  const { expected } = certificateChain;
  if ((members.chain_file === undefined) === (members.chain_pem === undefined)) {
    report({ name: at, problem: 'needs one of chain_file and chain_pem', expected });
    return [];
  }
  if (members.chain_pem !== undefined)
    return reportRepeated(entry, requireTexts(entry, 'chain_pem', certificateChain, MAX_CHAINS));
  const parse = (path: string) => certificateChain.parse(readSettingFile(resolve(baseDir, path)));
  const type = { expected: `a file with ${expected}`, parse };
  return reportRepeated(entry, requireTexts(entry, 'chain_file', type, MAX_CHAINS));
}

function reportRepeated({ at, report }: WitnessEntry, chains: readonly string[][]): readonly string[][] {
  const texts = new Set(chains.map((chain) => chain.join('')));
  if (texts.size < chains.length)
    report({ name: at, problem: 'names a chain twice', expected: 'each chain once' });
  return chains;
}

/** The headers, and basic authentication (RFC 7617) from `username` and `password`. */
function readHeaders(entry: WitnessEntry): Record<string, string> {
  const { at, members, report } = entry;
  const { headers = {} } = members;
  const expected = `an object of at most ${MAX_HEADERS} header names and their texts`;
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    report({ name: `${at}.headers`, problem: 'is not an object', expected });
    return {};
  }
  const names = Object.keys(headers);
  const wrong = names.find((name) => !/^[A-Za-z0-9-]{1,64}$/.test(name) || FIXED.has(name.toLowerCase()));
  if (names.length > MAX_HEADERS || wrong !== undefined) {
    const problem = wrong === undefined ? 'has too many' : 'has a name that cannot be set';
    report({ name: `${at}.headers`, problem, expected });
    return {};
  }
  const read: WitnessEntry = { ...entry, at: `${at}.headers`, members: { ...headers } };
  const texts = names.map((name) => [name.toLowerCase(), requireText(read, name, credential)] as const);
  return { ...Object.fromEntries(texts), ...basicAuthentication(entry, names) };
}

const FIXED = new Set(['host', 'content-length', 'content-type', 'transfer-encoding', 'connection']);

function basicAuthentication(entry: WitnessEntry, headerNames: readonly string[]): Record<string, string> {
  const { at, members, report } = entry;
  const username = findText(entry, 'username', credential);
  const password = findText(entry, 'password', credential);
  if (members.username === undefined && members.password === undefined) return {};
  const isComplete = members.username !== undefined && members.password !== undefined;
  const isAlone = !headerNames.some((name) => name.toLowerCase() === 'authorization');
  if (!isComplete || !isAlone || username?.includes(':')) {
    const expected = 'username (without ":") and password, and then no authorization header';
    report({ name: at, problem: 'has another authentication', expected });
    return {};
  }
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

function hostOf(url: string | undefined): string {
  return url === undefined ? '' : new URL(url).hostname;
}
