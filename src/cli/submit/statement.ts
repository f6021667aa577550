/** The form of the signed statement that flags choose, and what it names. */
import { StatementForm } from '../../../gen/attestation/v1/attestations_pb.js';
import { MAX_SUBJECTS } from '../../proof/statement/public-statement.js';
import { UsageError } from '../cli.js';

/** Flags of the signed statement. */
export type StatementFlags = { readonly public?: boolean; readonly names?: boolean };

/** Help text about them. */
export const STATEMENT_HELP = `
--public makes the signed statement one that everyone who has the bundle can read: an in-toto statement with the metadata as its
predicate, of all files in one submission, so that one bundle proves each of up to ${MAX_SUBJECTS.toLocaleString('en')} files, also with cosign, and policies
can decide on the result. It needs metadata of a schema with a predicate type (--metadata, --junit, --eval), and cannot be taken back.
A statement is private by default: it has a commitment to the metadata. --names puts the recorded path of each file into it;
a public one has it always.`;

/** A file of a statement: the name that is recorded, and its SHA-256 in lower-case hex. */
export type StatedFile = { readonly name: string; readonly sha256: string };

/** The members of a request that its statement is made of: the artifact and, of a public one, the other files. */
export function statedRequest(
  { public: isPublic, names }: StatementFlags,
  { name, sha256 }: StatedFile,
  others: readonly StatedFile[] = [],
) {
  const artifact = isPublic || names ? { sha256, name } : { sha256 };
  if (!isPublic) return { artifact };
  return { artifact, statement: StatementForm.PUBLIC, subjects: others.map((other) => ({ ...other })) };
}

/** Throws UsageError if there are more files than a public statement names. */
export function assertSubjects(files: { readonly length: number }): void {
  if (files.length <= MAX_SUBJECTS) return;
  const most = MAX_SUBJECTS.toLocaleString('en');
  throw new UsageError(
    `a public statement names at most ${most} files, and there are ${files.length}: with --set it is of the set of a folder`,
  );
}
