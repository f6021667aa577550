/** Verification of bundles and receipts, of which each option is checked: one that is misspelled would check nothing. */
import {
  type Verification,
  type VerifyOptions,
  verifyBundle as verifyAnyway,
} from '../proof/verify/verify.js';
import {
  type ReceiptOptions,
  type ReceiptVerification,
  verifyReceipt as verifyReceiptAnyway,
} from '../proof/verify/verify-receipt.js';
import { ENVIRONMENTS, environmentName } from '../protocol/environment.js';
import {
  ANYTHING,
  BYTES,
  COUNT,
  checkOptions,
  DATE,
  either,
  FUNCTION,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  STRING,
} from './input/options.js';
import { kindOf, plainJson } from './input/plain-json.js';

const ENVIRONMENT = oneOf(...ENVIRONMENTS.map(environmentName));

const POLICY: OptionCheck = {
  isRight: (value) => typeof value === 'object' && value !== null && 'required' in value,
  expected: 'a policy, { required: [names of witnesses] }',
};

const NAMES: OptionCheck = {
  isRight: (value) => Array.isArray(value) && value.every((name) => typeof name === 'string'),
  expected: 'an array of names of witnesses',
};

const HEADERS: OptionCheck = {
  isRight: (value) => typeof value === 'object' && value !== null && 'get' in value,
  expected: 'a Map of block headers by height',
};

const SET: OptionCheck = {
  isRight: (value) => typeof value === 'object' && value !== null,
  expected: 'the bytes of a set file, a stream of them, or a set that was read',
};

const VERIFY_OPTIONS: OptionChecks<VerifyOptions> = {
  artifact: BYTES,
  artifactSha256: STRING,
  metadata: ANYTHING,
  metadataSalt: either(STRING, BYTES),
  environment: ENVIRONMENT,
  project: STRING,
  issuer: STRING,
  identity: STRING,
  trustRoots: ANYTHING,
  policy: POLICY,
  minWitnesses: COUNT,
  requireWitnesses: NAMES,
  now: DATE,
  receipt: BYTES,
  set: SET,
  setProof: ANYTHING,
  memberPath: STRING,
  bitcoinHeaders: HEADERS,
  evmRpc: FUNCTION,
};

const RECEIPT_OPTIONS: OptionChecks<ReceiptOptions> = {
  leafHash: BYTES,
  submissionId: STRING,
  environment: ENVIRONMENT,
  trustRoots: ANYTHING,
  now: DATE,
};

/**
 * Verifies a bundle, given as JSON text, UTF-8 bytes, parsed JSON (of REST or ProtoJSON) or a message: the result lists
 * every problem. Throws TypeError, and nothing else, if an option is unknown or of another type, or metadata is not JSON.
 */
export async function verifyBundle(bundle: unknown, options: VerifyOptions): Promise<Verification> {
  checkOptions(options, VERIFY_OPTIONS);
  requireTime(options);
  const { metadata } = options;
  if (metadata !== undefined && typeof metadata !== 'string' && !(metadata instanceof Uint8Array)) {
    plainJson(metadata, ['metadata']);
  }
  return verifyAnyway(bundle, options);
}

/**
 * Verifies a COSE receipt: the log signed a tree that holds the leaf at the receipt's index. Nothing proves when it was
 * signed, so the log must still be open; of a log that has ended only the bundle proves something. Throws TypeError, and
 * nothing else, if an argument is unknown or of another type.
 */
export async function verifyReceipt(
  bytes: Uint8Array,
  options: ReceiptOptions,
): Promise<ReceiptVerification> {
  if (!BYTES.isRight(bytes)) throw new TypeError(`a receipt must be ${BYTES.expected}, not ${kindOf(bytes)}`);
  checkOptions(options, RECEIPT_OPTIONS);
  requireTime(options);
  return verifyReceiptAnyway(bytes, options);
}

function requireTime({ now }: { now: Date }): void {
  if (now === undefined) throw new TypeError('the option now is missing: give new Date()');
}
