/** The step about RFC 3161 time stamps: each is over the signature, by an authority trusted at its time. */
import { sha256 } from '../bytes/primitives.js';
import { TimestampError } from '../rfc3161/error.js';
import { signerName } from '../rfc3161/signer-name.js';
import { verifyTimestamp } from '../rfc3161/verify-timestamp.js';
import { instantText, type VouchedTime } from '../verify/instant.js';
import { type Check, failed, missing, notChecked, passed } from '../verify/report.js';
import type { ParsedSigstoreBundle } from './bundle.js';
import { isWithin, type SigstoreTrust, type TrustedStamper } from './trusted-root.js';

/** The check of a time stamp; if it passes, the stated time and the proven one. */
type TimestampFinding = { readonly check: Check } & Partial<VouchedTime>;

/** Codes of algorithms that this verifier does not support: the stamp may be valid. */
const UNKNOWN_HERE: readonly string[] = ['algorithm_unsupported', 'imprint_algorithm'];

/** Codes of a stamp by an authority that is not in the trusted root. */
const STRANGER: readonly string[] = ['timestamps.signer_untrusted', 'timestamps.signer_missing'];

/** Placeholder authority if the trusted root has none. */
const NOBODY: TrustedStamper = { name: '', chain: [], span: { from: new Date(0) } };

/**
 * Checks every stamp by a trusted authority: a bundle with an invalid one was changed. A stamp by another authority is
 * ignored; the step fails if a stamp is required and none is valid.
 */
export async function checkTimestamps(
  { timestamps, content }: ParsedSigstoreBundle,
  trust: SigstoreTrust | undefined,
  isWanted: boolean,
): Promise<TimestampFinding[]> {
  const open = isWanted ? missing : notChecked;
  if (timestamps.length === 0) {
    return [{ check: open('timestamps.none', 'no time stamp is in the bundle') }];
  }
  if (trust === undefined) {
    return [{ check: open('timestamps.no_trust', 'no trusted root was given to check time stamps with') }];
  }
  const digest = sha256(content.signature);
  const authorities = trust.authorities.length > 0 ? trust.authorities : [NOBODY];
  const findings = await Promise.all(
    timestamps.map(async ({ path, response }) => {
      const found = await Promise.all(authorities.map((one) => checkBy(one, response, digest, path)));
      return (
        found.find(({ latest }) => latest !== undefined) ??
        found.find(({ check }) => !STRANGER.includes(check.code)) ?? { response, path }
      );
    }),
  );
  const isMissing = isWanted && !findings.some((finding) => 'latest' in finding);
  return findings.map((finding) => ('check' in finding ? finding : byStranger(finding, isMissing)));
}

function byStranger(
  { response, path }: { response: Uint8Array; path: string },
  isMissing: boolean,
): TimestampFinding {
  const code = 'timestamps.authority_unknown';
  const message = `the time stamp is by ${signerName(response)}, which the trusted root does not have`;
  return { check: isMissing ? failed(code, message, path) : notChecked(code, message) };
}

async function checkBy(
  { chain, name, span }: TrustedStamper,
  response: Uint8Array,
  digest: Uint8Array,
  path: string,
): Promise<TimestampFinding> {
  try {
    const { genTime, latest, subject } = await verifyTimestamp({
      response,
      stamped: { digest },
      chains: [chain],
    });
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
