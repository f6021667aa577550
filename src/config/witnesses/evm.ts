/** A witness of kind `evm`: a contract on a chain that speaks Ethereum's JSON-RPC. */
import { createECDH, createSecretKey, type KeyObject } from 'node:crypto';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { InvalidValue } from '../invalid-value.js';
import { findInteger, findText, reportUnknownMembers, requireInteger, requireText } from '../members.js';
import { readSettingFile } from '../setting-files.js';
import { outboundUrl } from '../setting-types.js';
import { quote, type Settings, type SettingType } from '../settings.js';
import { COMMON_MEMBERS, type CommonWitnessConfig, readCommon, type WitnessEntry } from './entry.js';

/** A contract that records checkpoints, and the account that pays for it. */
export type EvmConfig = CommonWitnessConfig & {
  readonly kind: WitnessKind.EVM;
  /** May hold an API key. */
  readonly rpcUrl: string;
  /** EIP-155. */
  readonly chainId: number;
  /** 0x and lower-case hex. */
  readonly contract: string;
  /** The account's secp256k1 key, 32 bytes. Undefined despite its type if a problem was reported. */
  readonly privateKey: KeyObject;
  /** The number of blocks that must have the event, its own included. */
  readonly confirmations: number;
  /** The most that is paid for gas, in wei. */
  readonly maxFeePerGas: bigint;
};

const OWN_MEMBERS = [
  'rpc_url',
  'chain_id',
  'contract',
  'method',
  'key_file',
  'confirmations',
  'max_fee_gwei',
];
const DEFAULT_CONFIRMATIONS = 12;
const MAX_GWEI = 1_000_000;
/** A transaction costs money. */
const DEFAULT_EVERY_MS = 3_600_000;

/** A private key of secp256k1. */
export const evmPrivateKey: SettingType<KeyObject> = {
  expected: 'a private key of secp256k1: 64 hex digits, with or without 0x',
  secret: true,
  fromFile: true,
  parse: (text) => {
    const [, hex] = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text.trim()) ?? [];
    if (hex === undefined) throw new InvalidValue();
    try {
      createECDH('secp256k1').setPrivateKey(hex, 'hex');
    } catch {
      throw new InvalidValue('it is no number of the curve');
    }
    return createSecretKey(hex, 'hex');
  },
};

/** The path of a file with such a key. */
export const evmKeyFile: SettingType<KeyObject> = {
  expected: `a file that only its owner and group can read, with ${evmPrivateKey.expected}`,
  parse: (path) => {
    const text = readSettingFile(path);
    const mode = statSync(path).mode & 0o777;
    if ((mode & 0o007) !== 0) throw new InvalidValue(`anyone can read it, its mode is ${mode.toString(8)}`);
    return evmPrivateKey.parse(text);
  },
};

const contractAddress: SettingType<string> = {
  expected: 'an address: 0x and 40 hex digits',
  parse: (text) => {
    if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new InvalidValue();
    const lower = text.toLowerCase();
    if (text !== lower && text !== withChecksum(lower))
      throw new InvalidValue('its capitals are no checksum');
    return lower;
  },
};

/** The only method; the member is for configurations that name it. */
const recordingMethod: SettingType<string> = {
  expected: 'anchor, with the address of a contract that "attest witnesses deploy-contract" creates',
  parse: (text) => {
    if (text === 'eas') throw new InvalidValue('time stamps of EAS are not supported any more');
    if (text !== 'anchor') throw new InvalidValue();
    return text;
  },
};

/** Reads the members of an EVM witness. */
export function readEvm(entry: WitnessEntry): EvmConfig {
  reportUnknownMembers(entry, [...COMMON_MEMBERS, ...OWN_MEMBERS]);
  findText(entry, 'method', recordingMethod);
  return {
    ...readCommon(entry, { required: false, everyMs: DEFAULT_EVERY_MS }),
    kind: WitnessKind.EVM,
    rpcUrl: requireText(entry, 'rpc_url', outboundUrl),
    chainId: requireInteger(entry, 'chain_id', 1, Number.MAX_SAFE_INTEGER),
    contract: requireText(entry, 'contract', contractAddress),
    privateKey: readKey(entry),
    confirmations: findInteger(entry, 'confirmations', 1, 10_000) ?? DEFAULT_CONFIRMATIONS,
    maxFeePerGas: readMaxFee(entry),
  };
}

function readKey(entry: WitnessEntry): KeyObject {
  const { at, members, baseDir, evmKey, report } = entry;
  if (members.key_file === undefined) {
    const problem = 'is not set, nor is EVM_PRIVATE_KEY';
    if (evmKey === undefined) report({ name: `${at}.key_file`, problem, expected: evmKeyFile.expected });
    return evmKey as KeyObject;
  }
  const parse = (path: string) => evmKeyFile.parse(resolve(baseDir, path));
  return findText(entry, 'key_file', { ...evmKeyFile, parse }) as KeyObject;
}

/** Reports two witnesses with one account on one chain: each would take the other's nonces. */
export function reportSharedAccounts({ report }: Settings, witnesses: readonly EvmConfig[]): void {
  for (const [i, one] of witnesses.entries()) {
    const other = witnesses.slice(0, i).find((before) => isSameAccount(before, one));
    if (other === undefined) continue;
    const problem = `has one account on chain ${one.chainId} for ${quote(other.name)} and ${quote(one.name)}`;
    report({ name: 'WITNESSES', problem, expected: 'an account of its own for each EVM witness of a chain' });
  }
}

/** A key that could not be read is undefined. */
function isSameAccount(a: EvmConfig, b: EvmConfig): boolean {
  const [key, other]: (KeyObject | undefined)[] = [a.privateKey, b.privateKey];
  return a.chainId === b.chainId && key !== undefined && other !== undefined && key.equals(other);
}

function readMaxFee({ at, members, report }: WitnessEntry): bigint {
  const { max_fee_gwei: gwei } = members;
  const wei = typeof gwei === 'number' ? weiOfGwei(gwei) : undefined;
  if (wei !== undefined) return wei;
  const problem = gwei === undefined ? 'is not set' : 'is wrong';
  const expected = `a number above 0 and up to ${MAX_GWEI}: the most that is paid for gas, in gwei`;
  report({ name: `${at}.max_fee_gwei`, problem, expected });
  return 0n;
}

/** Converts gwei to wei, of which each is a billion. Returns undefined unless it is above 0 and at most a million gwei. */
export function weiOfGwei(gwei: number): bigint | undefined {
  const wei = Math.round(gwei * 1e9);
  return wei >= 1 && gwei <= MAX_GWEI ? BigInt(wei) : undefined;
}

/** EIP-55: a letter is a capital if the digit of the hash at its place is 8 or more. */
function withChecksum(lower: string): string {
  const hash = Buffer.from(keccak_256(Buffer.from(lower.slice(2)))).toString('hex');
  const digits = [...lower.slice(2)];
  return `0x${digits.map((digit, i) => (hash[i]! >= '8' ? digit.toUpperCase() : digit)).join('')}`;
}
