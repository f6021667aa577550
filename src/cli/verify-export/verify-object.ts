/** Verifies the lines of one object, and the object against its manifest. */
import { basename } from 'node:path';
import { FormatError } from '../../proof/bytes/format-error.js';
import {
  type BatchRange,
  createObjectCheck,
  type ObjectCheck,
  type ObjectExpectation,
} from '../../proof/export/object-check.js';
import type { LineVerifier } from '../../proof/export/verify-line.js';
import { BATCH_ID } from '../../protocol/ids.js';
import { errnoReason } from '../input/input-file.js';
import type { ExportFile } from './find-files.js';
import { type ObjectReader, openObject } from './read-lines.js';
import { addLine, addProblem, type ExportProblem, type Tally } from './tally.js';

/** The dependencies of verifying objects. `onBytes` is called with the length of each piece that is read. */
export type ObjectDeps = {
  readonly verifyLine: LineVerifier;
  readonly tally: Tally;
  readonly onBytes: (bytes: number) => void;
};

/** With more wrong lines than this the rest of an object is not verified: its size may be a fraud. */
const MAX_WRONG_LINES = 1000;

const OBJECT_NAME = /^(.*)\.jsonl(?:\.gz)?$/;

/**
 * Verifies an object. It must be what a verified manifest of its folder says of it, if one lists it. Returns the range of
 * its batch, if a line can be read.
 */
export async function verifyObject(
  deps: ObjectDeps,
  file: ExportFile,
  listed: ObjectExpectation['listed'],
): Promise<BatchRange | undefined> {
  const { tally } = deps;
  tally.objects++;
  const name = OBJECT_NAME.exec(basename(file.path))?.[1];
  const batchId = name !== undefined && BATCH_ID.test(name) ? name : undefined;
  const check = createObjectCheck({ batchId, listed });
  const reader = openObject(file.path, deps.onBytes);
  try {
    await verifyLines(deps, file, reader, { check, isListed: listed !== undefined });
    const stored = await reader.finish();
    const object = listed?.object;
    if (object !== undefined && (stored.sha256 !== object.sha256 || stored.bytes !== object.bytes)) {
      const reason = `its SHA-256 is not the one in its manifest, which lists revision ${object.revision}: download both again if the export was just replacing it`;
      addProblem(tally, { file: file.name, reason, verdict: 'not_verified' });
    }
  } catch (error) {
    addProblem(tally, unreadable(file.name, error as Error));
  } finally {
    reader.close();
  }
  return check.range();
}

/** Rejects with errors of the file system and of zlib. */
async function verifyLines(
  { verifyLine, tally }: ObjectDeps,
  { name: file }: ExportFile,
  { lines }: ObjectReader,
  { check, isListed }: { check: ObjectCheck; isListed: boolean },
): Promise<void> {
  let line = 0;
  let wrong = 0;
  try {
    for await (const bytes of lines) {
      line++;
      const found = await verifyLine(bytes);
      const misplaced = found.facts === undefined ? [] : check.add(found.facts);
      const reasons = found.reason === '' ? misplaced : [found.reason, ...misplaced];
      const verdict = misplaced.length > 0 ? 'not_verified' : found.verdict;
      addLine(tally, { ...found, verdict });
      if (verdict === 'verified') continue;
      addProblem(tally, { file, line, reason: reasons.join('; '), verdict });
      wrong++;
      if (wrong > MAX_WRONG_LINES)
        throw new FormatError('too many lines are wrong: the rest is not verified');
    }
    if (line === 0 && !isListed)
      addProblem(tally, { file, reason: 'it has no lines', verdict: 'could_not_check' });
    for (const reason of check.end(line)) addProblem(tally, { file, reason, verdict: 'not_verified' });
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    addProblem(tally, { file, line: line + 1, reason: error.message, verdict: 'not_verified' });
  }
}

/** Returns the problem of an object whose bytes cannot be read, or cannot be inflated. */
function unreadable(file: string, error: NodeJS.ErrnoException): ExportProblem {
  return error.code?.startsWith('Z_')
    ? { file, reason: `it is not a whole gzip file: ${error.message}`, verdict: 'not_verified' }
    : { file, reason: `it cannot be read: ${errnoReason(error)}`, verdict: 'could_not_check' };
}
