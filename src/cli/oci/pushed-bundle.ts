/** Bundles that are attached to images. */
import { BUNDLE_MEDIA_TYPE } from '../../proof/bundle/bundle.js';
import { SIGSTORE_BUNDLE_MEDIA_TYPE } from '../../proof/bundle/sigstore-bundle.js';
import { fromBase64, fromUtf8 } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { jcsBytes } from '../../proof/bytes/jcs.js';
import { subjectsOf } from '../../proof/statement/public-statement.js';
import { isPublic, parseStatement } from '../../proof/statement/statement.js';
import { parseJsonText } from '../../proof/verify/read/json-text.js';
import { MAX_BUNDLE_CHARACTERS } from '../../proof/verify/read/read-bundle.js';
import { UsageError } from '../cli.js';

/** A Sigstore bundle as it is stored, and what its statement says. */
export type PushedBundle = {
  /** Its JCS, so that one bundle is stored once, whichever file it comes from. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly submissionId: string;
  readonly submittedAt: string;
  readonly predicateType: string;
  /** SHA-256 of the subjects, in hex. */
  readonly subjects: ReadonlySet<string>;
};

/**
 * Reads a proof bundle, or the Sigstore bundle of one. Verifies nothing. Throws UsageError, which names its `source`, if it is
 * neither, or its statement is not of an attestation service.
 */
export function readPushedBundle(input: Uint8Array, source: string): PushedBundle {
  try {
    const json = parseJsonText(input, MAX_BUNDLE_CHARACTERS) as ReturnType<typeof JSON.parse>;
    const bundle = json?.media_type === BUNDLE_MEDIA_TYPE ? json.sigstore_bundle : json;
    const payload = bundle?.dsseEnvelope?.payload;
    if (bundle?.mediaType !== SIGSTORE_BUNDLE_MEDIA_TYPE || typeof payload !== 'string')
      throw new FormatError('is neither a proof bundle nor a Sigstore bundle v0.3 with a DSSE envelope');
    const bytes = fromBase64(payload);
    const statement = parseStatement(bytes);
    const { predicateType } = JSON.parse(fromUtf8(bytes));
    const { submissionId, submittedAt, artifactSha256 } = statement;
    const subjects = isPublic(statement)
      ? subjectsOf(statement).map(({ sha256 }) => sha256)
      : [artifactSha256];
    const stored = jcsBytes(bundle) as Uint8Array<ArrayBuffer>;
    return { bytes: stored, submissionId, submittedAt, predicateType, subjects: new Set(subjects) };
  } catch (error) {
    if (error instanceof FormatError) throw new UsageError(`${source} cannot be pushed: ${error.message}`);
    throw error;
  }
}

/** Throws UsageError unless an image, by its digest, is a subject of the bundle. */
export function assertAbout({ subjects, submissionId }: PushedBundle, digest: string, source: string): void {
  if (subjects.has(digest.replace('sha256:', ''))) return;
  const [first] = subjects;
  const more = subjects.size > 1 ? ` and ${subjects.size - 1} more` : '';
  throw new UsageError(`${source} is about sha256:${first}${more} (${submissionId}), not about ${digest}`);
}
