import { type EnvironmentName, environmentNumber } from '../../protocol/environment.js';
import { derEcdsaSignature } from '../asn1/der-write.js';
import { equalBytes, sha256, verifyEcdsaP256Sha256 } from '../bytes/primitives.js';
import { parseReceipt, type Receipt, receiptToSign } from '../cose/receipt.js';
import { findRoot } from '../log/merkle.js';
import { problemOf } from './read/read-json.js';
import { type Check, failed, passed } from './report.js';
import { isValidAt, readTrust, type Trust, type TrustedLog } from './trust.js';

/** The expectations of a receipt, beside the trust roots. */
type ReceiptAsked = {
  /** Hash of the leaf that it should be about: `leaf_sha256` of the submission. */
  readonly leafHash: Uint8Array;
  /** The submission that it should be about, if that matters. */
  readonly submissionId?: string;
  /** The expected environment; `live` by default. */
  readonly environment?: EnvironmentName;
  readonly now: Date;
};

/** The trust and expectations of a receipt. `trustRoots` is the document trust_roots.json, parsed or as text. */
export type ReceiptOptions = ReceiptAsked & { readonly trustRoots: unknown };

/** The check, and the tree that holds the leaf if it passed. */
export type ReceiptVerification = {
  readonly check: Check;
  readonly origin?: string;
  readonly logIndex?: number;
  readonly treeSize?: number;
};

/**
 * Verifies a COSE receipt: the log signed a tree that holds the leaf at the receipt's index. Nothing proves when it was
 * signed, so the log must still be open; of a log that has ended only the bundle proves something. Never throws.
 */
export async function verifyReceipt(
  bytes: Uint8Array,
  options: ReceiptOptions,
): Promise<ReceiptVerification> {
  const { trust, problems } = readTrust(options.trustRoots);
  if (trust === undefined) {
    return { check: failed('receipt.no_trust', `the trust roots cannot be read: ${problems[0]?.message}`) };
  }
  return checkReceipt(bytes, trust, options);
}

/** Does the same with trust roots that were read. */
export async function checkReceipt(
  bytes: Uint8Array,
  trust: Trust,
  asked: ReceiptAsked,
): Promise<ReceiptVerification> {
  try {
    return await check(parseReceipt(bytes), trust, asked);
  } catch (error) {
    return { check: failed('receipt.malformed', `it is not a receipt: ${problemOf(error)}`) };
  }
}

async function check(receipt: Receipt, trust: Trust, asked: ReceiptAsked): Promise<ReceiptVerification> {
  const { issuer, subject, index, size, path, protectedHeader, signature } = receipt;
  const { leafHash, submissionId, environment = 'live', now } = asked;
  if (submissionId !== undefined && subject !== submissionId) {
    return { check: failed('receipt.other_submission', `the receipt is about ${subject}`) };
  }
  const log = findLog(receipt, trust);
  if (log?.receiptKey === undefined) {
    return { check: failed('receipt.unknown_key', 'the trust roots have no such receipt key of this log') };
  }
  if (log.environment !== environmentNumber(environment)) {
    return { check: failed('receipt.wrong_environment', 'the log is of the other environment') };
  }
  if (!isValidAt(log, now)) {
    return {
      check: failed('receipt.log_ended', 'the log has ended, and nothing proves when this was signed'),
    };
  }
  const root = findRoot({ leafHash, index, size }, path);
  const isSigned =
    root !== undefined &&
    (await verifyEcdsaP256Sha256(
      log.receiptKey,
      receiptToSign(protectedHeader, root),
      derEcdsaSignature(signature),
    ));
  if (!isSigned) {
    return { check: failed('receipt.invalid', 'the log has not signed a tree with this leaf at this place') };
  }
  const message = `the log ${issuer} signed a tree of ${size} leaves that holds the leaf`;
  return { check: passed('receipt.valid', message), origin: issuer, logIndex: index, treeSize: size };
}

function findLog({ issuer, keyId }: Receipt, trust: Trust): TrustedLog | undefined {
  return trust.logs.find(
    ({ key, receiptKey }) =>
      key.name === issuer && receiptKey !== undefined && equalBytes(sha256(receiptKey), keyId),
  );
}
