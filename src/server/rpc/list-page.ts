import { type DescMessage, getOption } from '@bufbuild/protobuf';
import { default_value } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Cursors } from './cursor.js';

type Position = readonly (number | string)[];

type ReadRows<R> = { rows: R[]; isCut: boolean; stoppedAt: Position | undefined };

/** A list. `query`: all that its pages depend on besides their position, such as project and filters. */
type List<R> = {
  query: readonly unknown[];
  /**
   * Reads at most `limit` rows after this position, or the first rows if there is none. `isCut`: the page has at least
   * one row but fewer than there are, because reading was cut short. `stoppedAt`: the position up to which there are no
   * further rows, if the rows after it have not been searched.
   */
  read: (before: string[] | undefined, limit: number) => Promise<R[] | ReadRows<R>>;
  positionOf: (row: R) => Position;
};

/** The rows of a page and the cursor of the next page, `''` on the last page. */
type ListPage<R> = { rows: R[]; nextCursor: string };

type PageRequest = { limit?: number | undefined; cursor: string };

/**
 * Returns the page reader of a list request. `limit` defaults to the proto's default. The reader throws `cursor.invalid`
 * if the cursor was issued for another query.
 */
export function pageReader(request: DescMessage) {
  const defaultLimit = defaultOf(request, 'limit');
  return async <R>(
    cursors: Cursors,
    { limit = defaultLimit, cursor }: PageRequest,
    { query, read, positionOf }: List<R>,
  ): Promise<ListPage<R>> => {
    const found = await read(cursors.open(cursor, query), limit + 1);
    const { rows: all, isCut, stoppedAt } = Array.isArray(found) ? wholePage(found) : found;
    const rows = all.slice(0, limit);
    const last = isCut || all.length > limit ? rows.at(-1) : undefined;
    const end = last === undefined ? stoppedAt : positionOf(last);
    return { rows, nextCursor: end === undefined ? '' : cursors.seal(end, query) };
  };
}

const wholePage = <R>(rows: R[]): ReadRows<R> => ({ rows, isCut: false, stoppedAt: undefined });

/** The proto's default of a positive number of a request. Throws if it has none. */
export function defaultOf(request: DescMessage, name: string): number {
  const field = request.fields.find((candidate) => candidate.name === name);
  const value = field === undefined ? 0 : Number(getOption(field, default_value));
  if (!(value > 0)) throw new Error(`${request.typeName} has no default for ${name}`);
  return value;
}
