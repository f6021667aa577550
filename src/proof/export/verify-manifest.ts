/** Verification of a manifest's signature. */
import { type EnvironmentName, environmentNumber } from '../../protocol/environment.js';
import { FormatError } from '../bytes/format-error.js';
import { verifyEcdsaP256Sha256 } from '../bytes/primitives.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../statement/dsse.js';
import { parseStatement } from '../statement/statement.js';
import { isValidAt, type Trust, type TrustedDsseKey } from '../verify/trust.js';
import type { ManifestFields } from './manifest-fields.js';
import { readManifest, readManifestEnvelope, type SignedManifest } from './read-manifest.js';

/** Inputs of the check of a manifest. Any project by default. */
export type ManifestOptions = {
  readonly trust: Trust;
  readonly environment: EnvironmentName;
  readonly project?: string | undefined;
  readonly now: Date;
};

/**
 * The fields of a verified manifest, or why it is not verified. `isUnknown`: a trusted key has signed it in a form that this
 * version does not know.
 */
type ManifestVerification =
  | { readonly manifest: ManifestFields; readonly problem?: never; readonly isUnknown?: never }
  | { readonly manifest?: never; readonly problem: string; readonly isUnknown?: true };

/**
 * Verifies a manifest's bytes. Nothing proves when a manifest was signed, and it is signed again with every change: so
 * the key must have been trusted at some time from the manifest's day on.
 */
export async function verifyManifest(
  bytes: Uint8Array,
  options: ManifestOptions,
): Promise<ManifestVerification> {
  let signed: SignedManifest;
  try {
    signed = readManifest(bytes);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return (await isOfUnknownForm(bytes, options))
      ? { problem: `a trusted key has signed a form that this version does not know`, isUnknown: true }
      : { problem: error.message };
  }
  const { environment, project } = signed.fields;
  if (environment !== options.environment) {
    return { problem: `the manifest is of the ${environment} environment, not ${options.environment}` };
  }
  if (options.project !== undefined && project !== options.project) {
    return { problem: `the manifest is of ${project ?? 'all projects of a log'}, not of ${options.project}` };
  }
  const key = await findSigner(signed, options);
  if (key === undefined) return { problem: 'the manifest is not signed by a key of the trust roots' };
  return isTrustedSince(key, signed.fields.day, options.now)
    ? { manifest: signed.fields }
    : { problem: "the manifest's key was not trusted at any time since its day" };
}

/** Whether a trusted key has signed something that is neither a manifest nor the statement of a submission. */
async function isOfUnknownForm(bytes: Uint8Array, options: ManifestOptions): Promise<boolean> {
  try {
    const envelope = readManifestEnvelope(bytes);
    return !isSubmission(envelope.statement) && (await findSigner(envelope, options)) !== undefined;
  } catch (error) {
    if (error instanceof FormatError) return false;
    throw error;
  }
}

function isSubmission(statement: Uint8Array): boolean {
  try {
    parseStatement(statement);
    return true;
  } catch (error) {
    if (error instanceof FormatError) return false;
    throw error;
  }
}

async function findSigner(
  { statement, signature }: Omit<SignedManifest, 'fields'>,
  { trust, environment }: ManifestOptions,
): Promise<TrustedDsseKey | undefined> {
  const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statement);
  for (const key of trust.dsseKeys) {
    if (key.environment !== environmentNumber(environment)) continue;
    if (await verifyEcdsaP256Sha256(key.spki, pae, signature)) return key;
  }
  return undefined;
}

function isTrustedSince({ validFrom, validTo }: TrustedDsseKey, day: string, now: Date): boolean {
  const isBegun = validFrom === undefined || isValidAt({ validFrom }, now);
  return isBegun && (validTo === undefined || validTo.getTime() >= Date.parse(`${day}T00:00:00Z`));
}
