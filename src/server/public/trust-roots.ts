import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import {
  type DsseSigningKeySchema,
  type TimestampAuthoritySchema,
  type TransparencyLogSchema,
  type TrustRoots,
  TrustRootsSchema,
  type WitnessPolicySchema,
} from '../../../gen/attestation/v1/service_pb.js';
import { fromPem, toPem } from '../../proof/asn1/pem.js';
import { type TrustedLog, type TrustedRoot, trustedRoot } from '../../proof/bundle/trusted-root.js';
import { toHex } from '../../proof/bytes/encoding.js';
import { ed25519Spki, sha256 } from '../../proof/bytes/primitives.js';
import { encodeVerifierKey, ML_DSA_44_NOTE_KEY, noteKey } from '../../proof/log/note.js';
import type { SerializedResponse } from '../core/call.js';
import { etagOf } from '../core/http/etag.js';
import type { Pool } from '../database/connect.js';
import { compileWriter } from '../json/codec.js';
import { type DsseKey, listDsseKeys } from '../log/store/dsse-keys.js';
import { type Log, listLogs, logName } from '../log/store/logs.js';
import { type DatedPolicy, listPolicies } from '../log/store/policies.js';
import {
  listTimestampAuthorities,
  type TimestampAuthorityRow,
} from '../witnessing/store/timestamp-authorities.js';
import { listTrustedWitnesses, type TrustedWitnessRow } from '../witnessing/store/trusted-witnesses.js';

import { logPolicy } from './log-policy.js';

/** Reads the trust roots. */
export type TrustRootsReader = {
  read(): Promise<SerializedResponse<TrustRoots>>;
  /** One environment's logs and authorities as a Sigstore TrustedRoot. */
  readSigstore(environment: number): Promise<TrustedRoot>;
  /** One environment's logs and C2SP witnesses as a C2SP tlog-policy. */
  readLogPolicy(environment: number): Promise<string>;
};

type Sources = {
  logs: Log[];
  keys: DsseKey[];
  authorities: TimestampAuthorityRow[];
  witnesses: TrustedWitnessRow[];
  policies: DatedPolicy[];
};

const TTL_MS = 5_000;

/** A reader that caches the trust roots for five seconds. */
export function createTrustRootsReader(
  pool: Pool,
  verifyUrl: () => string,
  clock: () => number,
): TrustRootsReader {
  let cached: { roots: Promise<Roots>; untilMs: number } | undefined;
  const roots = (): Promise<Roots> => {
    if (cached === undefined || clock() >= cached.untilMs) {
      const reading = readRoots(pool, verifyUrl());
      cached = { roots: reading, untilMs: clock() + TTL_MS };
      reading.catch(() => {
        cached = undefined;
      });
    }
    return cached.roots;
  };
  return {
    read: async () => (await roots()).response,
    readSigstore: async (environment) => sigstoreRoot((await roots()).sources, environment),
    readLogPolicy: async (environment) => {
      const { logs, witnesses, policies } = (await roots()).sources;
      const own = logs.filter((log) => log.environment === environment);
      const policy = policies.filter((one) => one.environment === environment).at(-1);
      const located = own.map((log) => ({ log, url: logUrl(log, verifyUrl()) }));
      return logPolicy({ logs: located, witnesses, policy }, new Date(clock()));
    },
  };
}

type Roots = { sources: Sources; response: SerializedResponse<TrustRoots> };

const write = compileWriter(TrustRootsSchema);

async function readRoots(pool: Pool, verifyUrl: string): Promise<Roots> {
  const sources = await readSources(pool);
  const message = trustRootsMessage(sources, verifyUrl);
  const bytes = Buffer.from(write(message));
  const json = { bytes, etag: etagOf(bytes) };
  return { sources, response: { json: () => json, message: () => message } };
}

async function readSources(pool: Pool): Promise<Sources> {
  const [logs, keys, authorities, witnesses, policies] = await Promise.all([
    listLogs(pool),
    listDsseKeys(pool),
    listTimestampAuthorities(pool),
    listTrustedWitnesses(pool),
    listPolicies(pool),
  ]);
  return { logs, keys, authorities, witnesses, policies };
}

function trustRootsMessage(sources: Sources, verifyUrl: string): TrustRoots {
  const { logs, keys, authorities, witnesses, policies } = sources;
  const changes = [...keys, ...authorities, ...witnesses].flatMap(({ validFrom, validTo }) =>
    validTo ? [validFrom, validTo] : [validFrom],
  );
  const started = [...policies.map(({ validFrom }) => validFrom), ...logs.map(({ createdAt }) => createdAt)];
  const times = [...changes, ...started].map((date) => date.getTime());
  return create(TrustRootsSchema, {
    timestampAuthorities: authorities.map(authorityMessage),
    transparencyLogs: logs.map((log) => logMessage(log, verifyUrl)),
    ...witnessMessages(witnesses),
    dsseSigningKeys: keys.map(keyMessage),
    policies: policies.map(policyMessage),
    updatedAt: timestampFromDate(new Date(Math.max(0, ...times))),
  });
}

function authorityMessage(row: TimestampAuthorityRow): MessageInitShape<typeof TimestampAuthoritySchema> {
  const { name, url, operator, certChainPem } = row;
  return { name, url, operator, certChainPem, ...validity(row) };
}

/** The witnesses by kind. A calendar of several witnesses is listed once in `timestampCalendars`. */
function witnessMessages(witnesses: readonly TrustedWitnessRow[]) {
  const rows = witnesses.map(({ name, identity, ...dates }) => ({ name, identity, dates: validity(dates) }));
  const opentimestamps = rows.flatMap(({ name, identity, dates }) =>
    identity.kind === WitnessKind.OPENTIMESTAMPS ? [{ name, calendars: identity.calendars, ...dates }] : [],
  );
  return {
    logWitnesses: rows.flatMap(({ name, identity, dates }) =>
      identity.kind === WitnessKind.LOG_WITNESS
        ? identity.verifierKeys.map((verifierKey) => ({ name, verifierKey, ...dates }))
        : [],
    ),
    opentimestampsWitnesses: opentimestamps,
    timestampCalendars: [...new Set(opentimestamps.flatMap(({ calendars }) => calendars))],
    evmContracts: rows.flatMap(({ name, identity, dates }) => {
      if (identity.kind !== WitnessKind.EVM) return [];
      const { chainId, address, method, confirmations } = identity;
      return [{ name, chainId: BigInt(chainId), address, method, confirmations, ...dates }];
    }),
  };
}

function logMessage(log: Log, verifyUrl: string): MessageInitShape<typeof TransparencyLogSchema> {
  return {
    environment: log.environment,
    origin: log.origin,
    verifierKey: encodeVerifierKey(noteKey(log.origin, log.publicKey)),
    mlDsaVerifierKey: mlDsaVerifierKey(log) ?? '',
    publicKeyPem: toPem('PUBLIC KEY', ed25519Spki(log.publicKey)),
    url: logUrl(log, verifyUrl),
    receiptPublicKeyPem: log.receiptSpki === null ? '' : toPem('PUBLIC KEY', log.receiptSpki),
    ...validity({ validFrom: log.createdAt, validTo: endOf(log) }),
  };
}

/** The verifier key of a log's ML-DSA-44 key; undefined if it has none. */
export function mlDsaVerifierKey({ origin, mlDsaPublicKey }: Log): string | undefined {
  return mlDsaPublicKey === null
    ? undefined
    : encodeVerifierKey(noteKey(origin, Uint8Array.from(mlDsaPublicKey), ML_DSA_44_NOTE_KEY));
}

/** How long after the end of a log witnesses may vouch for its checkpoints: requests may have been in flight. */
const CLOSED_LOG_OVERLAP_MS = 60 * 60_000;

function endOf({ endedAt }: Log): Date | null {
  return endedAt && new Date(endedAt.getTime() + CLOSED_LOG_OVERLAP_MS);
}

function logUrl(log: Log, verifyUrl: string): string {
  return `${verifyUrl}/log/${logName(log)}`;
}

function keyMessage(key: DsseKey): MessageInitShape<typeof DsseSigningKeySchema> {
  return {
    environment: key.environment,
    fingerprintSha256: toHex(sha256(key.spki)),
    algorithm: 'ecdsa-p256-sha256',
    publicKeyPem: toPem('PUBLIC KEY', key.spki),
    ...validity(key),
    ...(key.activeFrom && { activeFrom: timestampFromDate(key.activeFrom) }),
  };
}

function policyMessage(policy: DatedPolicy): MessageInitShape<typeof WitnessPolicySchema> {
  return {
    environment: policy.environment,
    version: policy.version,
    required: policy.witnesses.filter(({ required }) => required).map(({ name }) => name),
    quorums: policy.quorums,
    deadline: durationFromMs(policy.deadlineMs),
    ...validity(policy),
  };
}

function validity({ validFrom, validTo }: { validFrom: Date; validTo: Date | null }) {
  return {
    validFrom: timestampFromDate(validFrom),
    ...(validTo === null ? {} : { validTo: timestampFromDate(validTo) }),
  };
}

function sigstoreRoot({ logs, authorities }: Sources, environment: number): TrustedRoot {
  return trustedRoot(
    logs.filter((log) => log.environment === environment).map(sigstoreLog),
    authorities.map(({ name, url, operator, certChainPem, validFrom, validTo }) => ({
      name,
      operator,
      uri: url,
      certChain: certChainPem.map((pem) => fromPem('CERTIFICATE', pem)),
      validFrom,
      ...(validTo === null ? {} : { validTo }),
    })),
  );
}

/** Without a start: some tools check that the log was trusted at the entry's integratedTime, which is 0. */
function sigstoreLog(log: Log): TrustedLog {
  const validTo = endOf(log);
  return { origin: log.origin, publicKey: log.publicKey, ...(validTo && { validTo }) };
}
