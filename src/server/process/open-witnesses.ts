import { randomBytes } from 'node:crypto';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import type { EvmConfig } from '../../config/witnesses/evm.js';
import type { LogWitnessConfig } from '../../config/witnesses/log-witness.js';
import type { OpenTimestampsConfig } from '../../config/witnesses/opentimestamps.js';
import type { Rfc3161Config } from '../../config/witnesses/rfc3161.js';
import type { WitnessConfig } from '../../config/witnesses/witnesses.js';
import { fromPem } from '../../proof/asn1/pem.js';
import { ANCHOR_METHOD } from '../../proof/evm/contract.js';
import { encodeVerifierKey } from '../../proof/log/note.js';
import type { StampWitness } from '../attestations/stamps/stamp-witness.js';
import { evmAccount } from '../witnessing/clients/evm/account.js';
import { evmWitness } from '../witnessing/clients/evm/evm.js';
import { jsonRpcClient } from '../witnessing/clients/evm/json-rpc.js';
import { logWitness } from '../witnessing/clients/log-witness.js';
import { openTimestampsWitness } from '../witnessing/clients/opentimestamps.js';
import { httpTimestampTransport, rfc3161Witness, signatureStamps } from '../witnessing/clients/rfc3161.js';
import type { WitnessSetup } from '../witnessing/set-up-witnesses.js';

const HASHES = { sha256: 'SHA-256', sha384: 'SHA-384', sha512: 'SHA-512' } as const;
const TIMEOUT_MS = 20_000;
/** A poll makes two rounds of requests to calendars within the timeout of a witness, 30 s. */
const CALENDAR_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const LIMITS = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };

/** Opens the configured witnesses. */
export function openWitnesses(configs: readonly WitnessConfig[]): WitnessSetup[] {
  return configs.map((config) => {
    const { kind, environments, required, everyMs } = config;
    return { kind, environments, required, everyMs, ...openWitness(config) };
  });
}

/** The most requests for stamps of signatures to an authority elsewhere. */
const STAMP_LIMITS = { inFlight: 8, perSecond: 50 };
const STAMP_TIMEOUT_MS = 10_000;

/** Opens those witnesses that stamp signatures. */
export function openStampWitnesses(configs: readonly WitnessConfig[]): StampWitness[] {
  return configs.flatMap((config) => {
    if (config.kind !== WitnessKind.RFC3161 || !config.stampSignatures) return [];
    const { name, environments } = config;
    return { name, environments, ask: openSignatureStamps(config, STAMP_TIMEOUT_MS), limits: STAMP_LIMITS };
  });
}

/** Opens an authority for stamps over bytes. */
export function openSignatureStamps(config: Rfc3161Config, timeoutMs: number): StampWitness['ask'] {
  const { send, ...trust } = openTransport(config, timeoutMs);
  return signatureStamps({ send, randomBytes }, trust);
}

type Opened = Pick<WitnessSetup, 'witness' | 'authority' | 'identity'>;

function openWitness(config: WitnessConfig): Opened {
  switch (config.kind) {
    case WitnessKind.RFC3161:
      return openAuthority(config);
    case WitnessKind.LOG_WITNESS:
      return openLogWitness(config);
    case WitnessKind.OPENTIMESTAMPS:
      return openCalendars(config);
    case WitnessKind.EVM:
      return openEvm(config);
  }
}

function openAuthority(config: Rfc3161Config): Opened {
  const { name, url, operator } = config;
  const { send, ...trust } = openTransport(config, TIMEOUT_MS);
  return {
    witness: rfc3161Witness({ send, randomBytes }, { name, ...trust }),
    authority: { url, operator, certChainsPem: config.chainsPem.map((chain) => [...chain]) },
  };
}

function openTransport({ url, headers, policyOid, chainsPem, hash }: Rfc3161Config, timeoutMs: number) {
  return {
    send: httpTimestampTransport({}, { url, headers, timeoutMs, maxBytes: MAX_ANSWER_BYTES }),
    chains: chainsPem.map((chain) => chain.map((pem) => fromPem('CERTIFICATE', pem))),
    hash: HASHES[hash],
    policyOid,
  };
}

function openLogWitness({ name, url, verifierKeys }: LogWitnessConfig): Opened {
  return {
    witness: logWitness({}, { name, url, keys: verifierKeys, ...LIMITS }),
    identity: { kind: WitnessKind.LOG_WITNESS, verifierKeys: verifierKeys.map(encodeVerifierKey) },
  };
}

function openCalendars({ name, calendars, min, explorerUrl }: OpenTimestampsConfig): Opened {
  const config = { name, calendars, min, explorerUrl, timeoutMs: CALENDAR_TIMEOUT_MS };
  return {
    witness: openTimestampsWitness({ randomBytes }, config),
    identity: { kind: WitnessKind.OPENTIMESTAMPS, calendars: [...calendars] },
  };
}

/** A block with its transactions' hashes, or a receipt with all logs of a transaction. */
const MAX_RPC_BYTES = 4 * 1024 * 1024;

function openEvm(config: EvmConfig): Opened {
  const { chainId, contract: address, confirmations, rpcUrl, privateKey } = config;
  const node = { url: rpcUrl, timeoutMs: TIMEOUT_MS, maxBytes: MAX_RPC_BYTES };
  const connect = (signal: AbortSignal) => jsonRpcClient({}, node, signal);
  return {
    witness: evmWitness({ connect, account: evmAccount(privateKey) }, config),
    identity: { kind: WitnessKind.EVM, chainId, address, method: ANCHOR_METHOD, confirmations },
  };
}
