/** The verifier's trust, parsed from a trust roots document and checked for consistency. */
import { isMessage, toJson } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import {
  type EvmContract,
  type TransparencyLog,
  type TrustRoots,
  TrustRootsSchema,
  type WitnessQuorum,
} from '../../../gen/attestation/v1/service_pb.js';
import type { Problem } from '../../protocol/problem.js';
import { fromPem } from '../asn1/pem.js';
import { fromHex, toBase64 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { ed25519Spki, equalBytes } from '../bytes/primitives.js';
import {
  COSIGNATURE_V1_KEY,
  ED25519_NOTE_KEY,
  ML_DSA_44_NOTE_KEY,
  type NoteKey,
  parseVerifierKey,
} from '../log/note.js';
import { dsseKeyHint } from '../statement/dsse.js';
import { parseJsonText } from './read/json-text.js';
import { problemOf, readMessage } from './read/read-json.js';

/** The period in which a key is trusted; no end while the key is in use. */
type Validity = { readonly validFrom?: Date; readonly validTo?: Date };

export type TrustedDsseKey = Validity & {
  readonly environment: Environment;
  readonly keyHint: string;
  readonly spki: Uint8Array;
};

export type TrustedTimestampAuthority = Validity & {
  readonly name: string;
  readonly operator: string;
  readonly chain: readonly Uint8Array[];
};

/**
 * `url` is where the log is served, if the trust roots name it; `mlDsaKey` is its second key, if it has one;
 * `receiptKey` that of its COSE receipts, SPKI in DER.
 */
export type TrustedLog = Validity & {
  readonly environment: Environment;
  readonly key: NoteKey;
  readonly mlDsaKey?: NoteKey;
  readonly receiptKey?: Uint8Array;
  readonly url: string;
};

/** A key of a C2SP witness, of either type of cosignature. A witness may have several: a cosignature by one is enough. */
export type TrustedCosigner = Validity & { readonly name: string; readonly key: NoteKey };

/** Calendars behind which is the Bitcoin blockchain. */
type TrustedCalendars = Validity & { readonly name: string; readonly calendars: readonly string[] };

/** A contract on an EVM chain. `address` is `0x` and 40 lower-case hex digits. */
export type TrustedContract = Validity & {
  readonly name: string;
  readonly chainId: number;
  readonly address: string;
  readonly method: string;
  /** After how many blocks a record counts as final. */
  readonly confirmations: number;
};

/** At least `threshold` of the witnesses `members`. */
export type TrustedQuorum = { readonly threshold: number; readonly members: readonly string[] };

/** Names of the required witnesses, quorums, and when the policy was in force. Versions increase. */
type TrustedPolicy = Validity & {
  readonly environment: Environment;
  readonly version: number;
  readonly required: readonly string[];
  readonly quorums: readonly TrustedQuorum[];
};

/** Everything a verifier trusts. Witness names are those of bundles. */
export type Trust = {
  readonly logs: readonly TrustedLog[];
  readonly cosigners: readonly TrustedCosigner[];
  readonly calendars: readonly TrustedCalendars[];
  readonly contracts: readonly TrustedContract[];
  readonly dsseKeys: readonly TrustedDsseKey[];
  readonly authorities: readonly TrustedTimestampAuthority[];
  readonly policies: readonly TrustedPolicy[];
};

/** Every change of the witnesses adds a policy, and none is ever removed. */
const MAX_ITEMS = 16 * 1024;

/** Maximum length of a text, in characters or bytes. */
const MAX_TEXT = 4 * 1024 * 1024;

/** Tolerated difference between our clock and a witness's when a key comes into use. */
const CLOCK_SKEW_MS = 60_000;

/**
 * Parses a trust_roots.json document (JSON text, UTF-8 bytes, parsed JSON of REST or ProtoJSON, or a message); returns its
 * trust or all problems. Ignores members of later versions: new ones may only add trust.
 */
export function readTrust(
  json: unknown,
): { trust: Trust; problems: [] } | { trust?: never; problems: Problem[] } {
  const { document, problem } = documentOf(json);
  if (problem !== undefined) return { problems: [problem] };
  const { message, problems } = readMessage(TrustRootsSchema, document, {
    maxItems: MAX_ITEMS,
  });
  if (message === undefined) return { problems };
  const wrong: Problem[] = [];
  const trust = trustOf(message, wrong);
  if (trust.logs.length + trust.dsseKeys.length === 0 && wrong.length === 0) {
    wrong.push({ path: '', message: 'names no log and no signing key' });
  }
  return wrong.length > 0 ? { problems: wrong } : { trust, problems: [] };
}

function documentOf(input: unknown): { document?: unknown; problem?: Problem } {
  if (isMessage(input, TrustRootsSchema)) return { document: toJson(TrustRootsSchema, input) };
  if (typeof input !== 'string' && !(input instanceof Uint8Array)) return { document: input };
  try {
    return { document: parseJsonText(input, MAX_TEXT) };
  } catch (error) {
    return { problem: { path: '', message: problemOf(error) } };
  }
}

/** Whether a key was trusted at a time. */
export function isValidAt({ validFrom, validTo }: Validity, at: Date): boolean {
  const started = validFrom === undefined || at.getTime() >= validFrom.getTime() - CLOCK_SKEW_MS;
  return started && (validTo === undefined || at <= validTo);
}

function trustOf(roots: TrustRoots, problems: Problem[]): Trust {
  return {
    logs: readEach(roots.transparencyLogs, '/transparency_logs', problems, trustedLog),
    cosigners: readEach(roots.logWitnesses, '/log_witnesses', problems, (witness) => ({
      name: witness.name,
      key: noteKeyOf(witness.verifierKey, [COSIGNATURE_V1_KEY, ML_DSA_44_NOTE_KEY]),
      ...validity(witness),
    })),
    calendars: readEach(roots.opentimestampsWitnesses, '/opentimestamps_witnesses', problems, (witness) => ({
      name: witness.name,
      calendars: witness.calendars,
      ...validity(witness),
    })),
    contracts: readEach(roots.evmContracts, '/evm_contracts', problems, trustedContract),
    dsseKeys: readEach(roots.dsseSigningKeys, '/dsse_signing_keys', problems, (key) => {
      const spki = fromPem('PUBLIC KEY', key.publicKeyPem);
      const keyHint = toBase64(fromHex(key.fingerprintSha256, 32));
      if (dsseKeyHint(spki) !== keyHint) throw new FormatError('the fingerprint is not the key’s');
      return { environment: key.environment, keyHint, spki, ...validity(key) };
    }),
    authorities: readEach(roots.timestampAuthorities, '/timestamp_authorities', problems, (authority) => ({
      name: authority.name,
      operator: authority.operator,
      chain: authority.certChainPem.map((pem) => fromPem('CERTIFICATE', pem)),
      ...validity(authority),
    })),
    policies: readEach(roots.policies, '/policies', problems, (policy) => ({
      environment: policy.environment,
      version: policy.version,
      required: policy.required,
      quorums: policy.quorums.map(trustedQuorum),
      ...validity(policy),
    })),
  };
}

/** The document has each key twice, as a note key and in PEM: both must be the same key. */
function trustedLog(log: TransparencyLog): TrustedLog {
  const { environment, origin, verifierKey, publicKeyPem, url } = log;
  const key = noteKeyOf(verifierKey, [ED25519_NOTE_KEY], origin);
  if (publicKeyPem !== '' && !equalBytes(fromPem('PUBLIC KEY', publicKeyPem), ed25519Spki(key.publicKey))) {
    throw new FormatError('verifier_key and public_key_pem are different keys');
  }
  const mlDsaKey = log.mlDsaVerifierKey && noteKeyOf(log.mlDsaVerifierKey, [ML_DSA_44_NOTE_KEY], origin);
  const { receiptPublicKeyPem: pem } = log;
  const receiptKey = pem === '' ? {} : { receiptKey: fromPem('PUBLIC KEY', pem) };
  return { environment, url, key, ...(mlDsaKey && { mlDsaKey }), ...receiptKey, ...validity(log) };
}

function trustedContract(contract: EvmContract): TrustedContract {
  const { name, chainId, address, method, confirmations } = contract;
  if (chainId < 1n || chainId > BigInt(Number.MAX_SAFE_INTEGER))
    throw new FormatError('the chain id is out of range');
  return {
    name,
    chainId: Number(chainId),
    address: address.toLowerCase(),
    method,
    confirmations,
    ...validity(contract),
  };
}

/** A quorum of none would be met by a bundle without witnesses. */
function trustedQuorum({ threshold, members }: WitnessQuorum): TrustedQuorum {
  if (threshold < 1 || threshold > new Set(members).size) {
    throw new FormatError(`a quorum cannot be ${threshold} of ${members.length} witnesses`);
  }
  return { threshold, members };
}

function noteKeyOf(verifierKey: string, types: readonly number[], name?: string): NoteKey {
  const key = parseVerifierKey(verifierKey);
  if (!types.includes(key.type)) throw new FormatError('the verifier key is of another type');
  if (name !== undefined && key.name !== name) throw new FormatError('the verifier key is of another log');
  return key;
}

function validity({
  validFrom,
  validTo,
}: {
  validFrom?: Timestamp | undefined;
  validTo?: Timestamp | undefined;
}): Validity {
  const window = {
    ...(validFrom && { validFrom: timestampDate(validFrom) }),
    ...(validTo && { validTo: timestampDate(validTo) }),
  };
  if (window.validFrom && window.validTo && window.validTo < window.validFrom) {
    throw new FormatError('its validity ends before it begins');
  }
  return window;
}

function readEach<I, O>(items: readonly I[], path: string, problems: Problem[], read: (item: I) => O): O[] {
  return items.flatMap((item, i) => {
    try {
      return [read(item)];
    } catch (error) {
      problems.push({
        path: `${path}/${i}`,
        message: problemOf(error),
      });
      return [];
    }
  });
}
