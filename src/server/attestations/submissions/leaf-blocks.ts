import { hasNames, keyOf, type Names } from './submission-names.js';

/** SQL of the leaves `[first, end)` of a log that have names. */
type LeafRange = { names: Names; logId: string; first: string; end: string };

/** The leaves of an entry of the indexes `submission_*_leaves`, as a power of two. */
const BLOCK_BITS = 4;
export const BLOCK = 2 ** BLOCK_BITS;

/**
 * The SQL that reads submissions `s` of a range by one of the indexes of blocks: its condition, its order, and the order of
 * the leaves of a block. Who reads n + {@link BLOCK} - 1 rows in the order of the index alone, forwards or backwards, has the
 * first n leaves of the range among them. Comparisons of whole rows, and of what the index lacks as a number, leave the planner
 * no other index to choose, and {@link inPartitions} keeps to the partitions of the range; not of builds, for which Postgres
 * would join bitmaps until it has statistics.
 */
export function leavesInBlocks({ names, logId, first, end }: LeafRange): {
  within: string;
  order: string[];
  inBlock: string;
} {
  const block = (index: string) => `${index} >> ${BLOCK_BITS}`;
  const { key, value } = keyOf(names);
  const order = [key, 's.log_id', block('s.log_index')];
  return {
    within: `
      (${order}) >= (${value}, ${logId}, ${block(first)}) AND (${order}) <= (${value}, ${logId}, ${block(`(${end} - 1)`)})
      AND (${hasNames(names)} AND s.log_index >= ${first} AND s.log_index < ${end})::integer <> 0
      AND ${names.build === undefined ? inPartitions({ logId, first, end }) : 's.build IS NOT NULL'}`,
    order,
    inBlock: 's.log_index',
  };
}

/**
 * A condition that holds for the submissions `s` of a range, and by which Postgres reads no other partition: 40 µs a page for
 * each. No log has the second id: such an alternative is in no index but a bitmap, so that none is chosen for it.
 */
function inPartitions({ logId, first, end }: Pick<LeafRange, 'logId' | 'first' | 'end'>): string {
  return `
      (s.log_id = ${logId} AND s.log_index >= ${first} OR s.log_id = -${logId} AND s.log_index > ${first})
      AND (s.log_id = ${logId} AND s.log_index < ${end} OR s.log_id = -${logId} AND s.log_index <= ${end})`;
}
