/** Time stamps over the DSSE signature, which a Sigstore bundle may carry. None is needed: they date it once more. */
import { TimestampError } from '../../rfc3161/error.js';
import { signerName } from '../../rfc3161/signer-name.js';
import { verifyTimestamp } from '../../rfc3161/verify-timestamp.js';
import { instantText } from '../instant.js';
import type { ParsedBundle, SignatureStamp } from '../read/parsed-bundle.js';
import { type Check, failed, notChecked, passed } from '../report.js';
import { isValidAt, type Trust, type TrustedTimestampAuthority } from '../trust.js';
import { UNKNOWN_HERE } from './timestamp-evidence.js';

/** The check of one stamp; if it passes, the latest time at which it can have been made, and by whom. */
export type StampFinding = {
  readonly check: Check;
  readonly path: string;
  readonly name: string;
  readonly time?: Date;
  readonly operator?: string;
};

/**
 * Checks every stamp against the authorities of the trust roots. One by another authority is not checked; one by a
 * trusted authority that does not hold fails.
 */
export async function checkSignatureStamps(
  { envelope }: ParsedBundle,
  { authorities }: Trust,
): Promise<StampFinding[]> {
  return Promise.all(
    envelope.stamps.map(async (stamp) => {
      const found = await Promise.all(
        authorities.map((authority) => checkBy(authority, stamp, envelope.signature)),
      );
      const valid = found.find(({ time }) => time !== undefined);
      return valid ?? found.find(({ check }) => check.code !== UNTRUSTED) ?? byStranger(stamp);
    }),
  );
}

const UNTRUSTED = 'signature.stamp.signer_untrusted';

function byStranger({ path, response }: SignatureStamp): StampFinding {
  const name = signerName(response);
  const message = `a time stamp of the signature is by ${name}, whose certificate is not in the trust roots`;
  return { check: notChecked(UNTRUSTED, message), path, name };
}

async function checkBy(
  authority: TrustedTimestampAuthority,
  { path, response }: SignatureStamp,
  signature: Uint8Array,
): Promise<StampFinding> {
  const name = `${authority.name}’s time stamp of the signature`;
  try {
    const stamp = { response, stamped: { message: signature }, chains: [authority.chain] };
    const { genTime, latest } = await verifyTimestamp(stamp);
    if (!isValidAt(authority, genTime)) {
      const message = `${authority.name} was not trusted at ${genTime.toISOString()}`;
      return { check: failed('signature.stamp.not_trusted_then', message, path), path, name };
    }
    const message = `${authority.name} stamped the signature no later than ${instantText(latest)}`;
    const check = passed('signature.stamped', message);
    return { check, path, name, time: latest, operator: authority.operator };
  } catch (error) {
    if (!(error instanceof TimestampError)) throw error;
    const [code, message] = [
      `signature.stamp.${error.code}`,
      `time stamp of the signature: ${error.message}`,
    ];
    const isUnknown = UNKNOWN_HERE.includes(error.code);
    return { check: isUnknown ? notChecked(code, message) : failed(code, message, path), path, name };
  }
}
