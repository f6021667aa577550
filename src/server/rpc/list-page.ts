import { type DescMessage, getOption } from '@bufbuild/protobuf';
import { default_value } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Cursors } from './cursor.js';

/** A list: `query` is everything that its pages depend on besides where they begin, such as project and filters. */
export type List<R> = {
  query: readonly unknown[];
  /**
   * At most `limit` rows: those behind the row with this position, the first ones without it. A page that `isCut` has
   * fewer than there are, and one at least.
   */
  read: (before: string[] | undefined, limit: number) => Promise<R[] | { rows: R[]; isCut: boolean }>;
  positionOf: (row: R) => readonly (number | string)[];
};

/** The rows of a page, and the cursor of the next one, `''` on the last. */
export type ListPage<R> = { rows: R[]; nextCursor: string };

type PageRequest = { limit?: number | undefined; cursor: string };

/**
 * Makes the reading of a list's pages. A request that leaves `limit` out gets as many items as its proto says. What is
 * made throws `cursor.invalid` for a cursor of another query.
 */
export function pageReader(request: DescMessage) {
  const defaultLimit = readDefaultLimit(request);
  return async <R>(
    cursors: Cursors,
    { limit = defaultLimit, cursor }: PageRequest,
    { query, read, positionOf }: List<R>,
  ): Promise<ListPage<R>> => {
    const found = await read(cursors.open(cursor, query), limit + 1);
    const { rows: all, isCut } = Array.isArray(found) ? { rows: found, isCut: false } : found;
    const rows = all.slice(0, limit);
    const last = isCut || all.length > limit ? rows.at(-1) : undefined;
    return { rows, nextCursor: last === undefined ? '' : cursors.seal(positionOf(last), query) };
  };
}

function readDefaultLimit(request: DescMessage): number {
  const field = request.fields.find(({ name }) => name === 'limit');
  const limit = field === undefined ? 0 : Number(getOption(field, default_value));
  if (!(limit > 0)) throw new Error(`${request.typeName} has no default for limit`);
  return limit;
}
