/** An archive is not what it should be, or does not fit the database: one line for the operator. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}
