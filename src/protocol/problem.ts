/** One thing wrong with a JSON value: where, as a JSON pointer (RFC 6901), and what. */
export type Problem = { readonly path: string; readonly message: string };

/** More problems than this of one value are not listed. */
export const MAX_PROBLEMS = 100;
