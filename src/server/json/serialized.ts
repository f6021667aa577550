/** A message as the REST surface spells it: its JSON in UTF-8, and the entity tag of these bytes where it is known. */
export type Written = { readonly bytes: Buffer; readonly etag?: string };

const WRITTEN = Symbol('written');

/** Gives a message its spelling, which is then taken in place of its fields. It must not change any more. */
export function setWritten<M extends object>(message: M, written: Written): M {
  return Object.assign(message, { [WRITTEN]: written });
}

/** The spelling of a message that was given one. */
export function findWritten(message: object): Written | undefined {
  return (message as { [WRITTEN]?: Written })[WRITTEN];
}
