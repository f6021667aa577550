import { randomBytes } from 'node:crypto';
import type { WitnessConfig } from '../../config/witnesses/witnesses.js';
import { fromPem } from '../../proof/asn1/pem.js';
import type { WitnessSetup } from '../logs/set-up-witnesses.js';
import { httpTimestampTransport, rfc3161Witness } from '../witness/rfc3161.js';

const HASHES = { sha256: 'SHA-256', sha384: 'SHA-384', sha512: 'SHA-512' } as const;
const TIMEOUT_MS = 20_000;
const MAX_ANSWER_BYTES = 64 * 1024;

/** The witnesses that the configuration names, ready to be asked. */
export function openWitnesses(configs: readonly WitnessConfig[]): WitnessSetup[] {
  return configs.map((config) => {
    const { name, kind, environments, required, everyMs, url, operator, policyOid, headers } = config;
    const chain = config.chainPem.map((pem) => fromPem('CERTIFICATE', pem));
    const hash = HASHES[config.hash];
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };
    const send = httpTimestampTransport({}, { url, headers, ...limits });
    return {
      witness: rfc3161Witness({ send, randomBytes }, { name, hash, chains: [chain], policyOid }),
      kind,
      environments,
      required,
      everyMs,
      authority: { url, operator, certChainPem: [...config.chainPem] },
    };
  });
}
