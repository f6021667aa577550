/** The time stamps over the signatures of an object's lines. */
import type { SignatureStamps } from '../../../proof/bundle/bundle.js';
import { fromBase64 } from '../../../proof/bytes/encoding.js';
import type { SignatureStamper } from '../../attestations/stamps/signature-stamper.js';
import { listStamps, parseStamps } from '../../attestations/stamps/stored-stamps.js';
import {
  createRowReader,
  type ExportedPage,
  type ExportedRow,
} from '../../attestations/submissions/exported-rows.js';
import type { Pool } from '../../database/connect.js';
import type { Log } from '../../log/store/logs.js';

/** The stamps of the line with this log index. */
export type StampsOf = (logIndex: number) => SignatureStamps;

/** Reads the stamps of a page of submissions with these log indexes. */
export type ReadStamps = (page: ExportedPage, logIndexes: readonly number[]) => Promise<StampsOf>;

/** Opens the stamps of an object of a log. Missing ones are made as far as the object's budget goes. */
export type OpenStamps = (log: Pick<Log, 'id' | 'environment'>) => ReadStamps;

type ExportStampsDeps = {
  pool: Pool;
  stamper: SignatureStamper;
  /** Monotonic milliseconds. */
  clock: () => number;
};

/**
 * The budget of an object: stamps that it has made, and milliseconds that it waits for them. Further lines go without. A stamp
 * by the embedded authority takes a worker 0.3 ms, ten times the rest of its line.
 */
const OBJECT_STAMPS = 1_000;
const OBJECT_WAIT_MS = 1_000;
/**
 * How long no object waits after one whose time ran out: a slow authority takes exports half of their time at most, one
 * that has made no stamp a tenth.
 */
const REST_MS = OBJECT_WAIT_MS;
const LONG_REST_MS = 10 * OBJECT_WAIT_MS;

/** Creates the function that opens the stamps of objects. */
export function createExportStamps({ pool, stamper, clock }: ExportStampsDeps): OpenStamps {
  let restUntilMs = 0;
  return ({ id: logId, environment }) => {
    let stampsLeft = OBJECT_STAMPS;
    let msLeft = OBJECT_WAIT_MS;
    const make = async (rows: readonly ExportedRow[], stored: ReadonlyMap<number, string>) => {
      const startMs = clock();
      const waitMs = startMs < restUntilMs ? 0 : msLeft;
      const found = await Promise.all(
        rows.map(async ({ logIndex, signature }, i) => {
          const leaf = {
            logId,
            logIndex,
            signature: fromBase64(signature),
            stamps: stored.get(logIndex) ?? '',
          };
          return [logIndex, await stamper.complete(leaf, environment, i < stampsLeft ? waitMs : 0)] as const;
        }),
      );
      stampsLeft = Math.max(0, stampsLeft - rows.length);
      msLeft = Math.max(0, msLeft - (clock() - startMs));
      const isSlow = found.some(([, { isStampPending }]) => !isStampPending);
      if (waitMs > 0 && msLeft === 0) restUntilMs = clock() + (isSlow ? REST_MS : LONG_REST_MS);
      return new Map(found);
    };
    return async (page, logIndexes) => {
      const stored = await listStamps(pool, logId, logIndexes);
      const incomplete = new Set(
        logIndexes.filter((index) => stamper.isIncomplete({ stamps: stored.get(index) ?? '' }, environment)),
      );
      const rows =
        incomplete.size === 0 ? [] : rowsOf(page).filter(({ logIndex }) => incomplete.has(logIndex));
      const made = await make(rows, stored);
      return (index) => made.get(index) ?? stampsIn(stored.get(index));
    };
  };
}

function stampsIn(text = ''): SignatureStamps {
  return { stamps: parseStamps(text).map(({ response }) => response) };
}

function rowsOf(page: ExportedPage): ExportedRow[] {
  const rows: ExportedRow[] = [];
  const readRow = createRowReader(page);
  for (let row = readRow(); row !== undefined; row = readRow()) rows.push(row);
  return rows;
}
