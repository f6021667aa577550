/** Signed statements that are more than their submission's row: public ones, and those that name artifact or identity. */
import type { LeafParts } from '../../../proof/bundle/bundle.js';
import type { Subject } from '../../../proof/statement/public-statement.js';
import type { Identity } from '../../../protocol/identity.js';

/** How the statement of a submission is known: `submission.statement_version`. */
export const StatementVersion = {
  /** Private, made of the row. */
  OF_ROW: 1,
  /** Private, stored. */
  PRIVATE: 2,
  /** Public, stored. */
  PUBLIC: 3,
} as const;

/** A statement to store with its submission; hashes in lower-case hex. */
export type NewStatement = {
  version: typeof StatementVersion.PRIVATE | typeof StatementVersion.PUBLIC;
  /** JCS, without line breaks. */
  text: string;
  /** SHA-256 of what is signed (PAE). */
  digest: string;
  shown: ShownParts;
  /** SHA-256 of the subjects beside the artifact. */
  subjects: readonly string[];
};

/** The parts of a statement that the API shows beside the submission; none of them once redacted. */
export type ShownParts = {
  /** The artifact's name. */
  readonly name?: string | undefined;
  readonly identity?: Identity | undefined;
  /** How many subjects a public statement has beside the artifact. */
  readonly subjects?: number | undefined;
};

/** What the API shows of a stored statement. */
export type ShownStatement = ShownParts & {
  readonly isPublic: boolean;
  readonly erasedAtMs: number | null;
};

/** A statement as it is stored: its text, or what is left of an erased one. */
export type StoredStatement =
  | { readonly text: string; readonly digest: Uint8Array; readonly erasedAt: null }
  | { readonly text: null; readonly digest: Uint8Array; readonly erasedAt: Date };

/**
 * What the API shows of a stored statement; null of one that is made of the row.
 *
 * @param shown JSON of {@link ShownParts}; null once redacted
 */
export function shownStatement(
  version: number,
  shown: string | null,
  erasedAtMs: number | null,
): ShownStatement | null {
  if (version === StatementVersion.OF_ROW) return null;
  const parts = shown === null ? {} : (JSON.parse(shown) as ShownParts);
  return { ...parts, isPublic: version === StatementVersion.PUBLIC, erasedAtMs };
}

/** A stored statement as bundles are made of it. */
export function signedOf({ text, digest, erasedAt }: StoredStatement): LeafParts['statement'] {
  return text ?? { digest, erasedAt: erasedAt.toISOString() };
}

/** The subjects of a stored public statement beside the artifact. */
export function otherSubjects(text: string): Subject[] {
  const { subject } = JSON.parse(text) as { subject: { name?: string; digest: { sha256: string } }[] };
  return subject
    .slice(1)
    .map(({ name, digest: { sha256 } }) => ({ sha256, ...(name !== undefined && { name }) }));
}
