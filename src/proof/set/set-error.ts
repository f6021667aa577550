/** What a check of a set is about, as the codes of checks and errors. */
type SetCode = 'set.shape' | 'set.head' | 'set.inclusion' | 'set.member';

/** Where the problem is, and its kind. */
type SetErrorDetails = {
  /** Number of the line in the set file, from 1. */
  readonly line?: number;
  /** The path of the entry, as it was read. */
  readonly path?: string;
  /** Whether another version may know this form: the input is not to be called wrong. */
  readonly isUnsupported?: boolean;
  /** SHA-256 in hex of a head whose form is not known. */
  readonly headSha256?: string;
};

/** A set, or a member proof, that cannot be read or made. The message has paths in printable form only. */
export class SetError extends Error {
  override readonly name = 'SetError';

  constructor(
    readonly code: SetCode,
    message: string,
    readonly details: SetErrorDetails = {},
  ) {
    super(message);
  }
}

/** The error of a form that this version does not know. */
export function unsupported(message: string, headSha256?: string): SetError {
  const details = { isUnsupported: true, ...(headSha256 !== undefined && { headSha256 }) };
  return new SetError('set.shape', message, details);
}
