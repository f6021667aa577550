/** The step about RFC 3161 time stamps: each is over the signature and by an authority that was trusted then. */
import { sha256 } from '../primitives.js';
import { TimestampError } from '../rfc3161/error.js';
import { verifyTimestamp } from '../rfc3161.js';
import { instantText, type VouchedTime } from '../verify/instant.js';
import { type Check, failed, missing, notChecked, passed } from '../verify/report.js';
import type { SigstoreFacts } from './bundle.js';
import { isWithin, type SigstoreTrust, type TrustedStamper } from './trusted-root.js';

/** A check of a time stamp; the times are there when it holds: the one it states, and the one it proves. */
export type TimestampFinding = { readonly check: Check } & Partial<VouchedTime>;

/** What is no fault of the stamp: this verifier does not know the algorithm. */
const UNKNOWN_HERE: readonly string[] = ['algorithm_unsupported', 'imprint_algorithm'];

/** Every stamp must hold: one of two that is wrong is a bundle that somebody has changed. */
export async function checkTimestamps(
  { timestamps, content }: SigstoreFacts,
  trust: SigstoreTrust | undefined,
): Promise<TimestampFinding[]> {
  if (timestamps.length === 0) {
    return [{ check: notChecked('timestamps.none', 'no time stamp is in the bundle') }];
  }
  if (trust === undefined) {
    return [
      { check: notChecked('timestamps.no_trust', 'no trusted root was given to check time stamps with') },
    ];
  }
  const digest = sha256(content.signature);
  return Promise.all(
    timestamps.map(async ({ path, response }) => {
      const findings = await Promise.all(
        trust.authorities.map((authority) => checkBy(authority, response, digest, path)),
      );
      const stranger = {
        check: failed('timestamps.signer_untrusted', 'no time-stamping authority is trusted', path),
      };
      return (
        findings.find(({ latest }) => latest !== undefined) ??
        findings.find(({ check }) => check.code !== 'timestamps.signer_untrusted') ??
        findings[0] ??
        stranger
      );
    }),
  );
}

async function checkBy(
  { chain, name, span }: TrustedStamper,
  response: Uint8Array,
  digest: Uint8Array,
  path: string,
): Promise<TimestampFinding> {
  try {
    const { genTime, latest, subject } = await verifyTimestamp({ response, digest, chains: [chain] });
    const by = name || subject;
    return isWithin(span, genTime)
      ? {
          check: passed(
            'timestamps.valid',
            `${by} stamped the signature no later than ${instantText(latest)}`,
          ),
          stated: genTime,
          latest,
        }
      : {
          check: failed(
            'timestamps.not_trusted_then',
            `${by} was not trusted at ${genTime.toISOString()}`,
            path,
          ),
        };
  } catch (error) {
    if (!(error instanceof TimestampError)) throw error;
    const code = `timestamps.${error.code}`;
    const check = UNKNOWN_HERE.includes(error.code)
      ? missing(code, error.message)
      : failed(code, error.message, path);
    return { check };
  }
}
