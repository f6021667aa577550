/** The fields of a manifest, and their checks before signing and after reading. */
import type { EnvironmentName } from '../../protocol/environment.js';
import { BATCH_ID, EXPORT_ID, PROJECT_ID } from '../../protocol/ids.js';
import { FormatError } from '../bytes/format-error.js';

/** The part of an origin that an archive's folder can have. */
const ARCHIVE_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;
const SHA256 = /^[0-9a-f]{64}$/;
const ORIGIN = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const ENDINGS = ['.jsonl', '.jsonl.gz'];
const MAX_SCHEMA_LENGTH = 256;

/** The fields of a manifest. */
export type ManifestFields = {
  /** The export's id, `exp_` and a ULID; of an archive the origin of its log. */
  readonly exportId: string;
  /** The project's id, `prj_` and a ULID; null of an archive, which has the submissions of all projects of one log. */
  readonly project: string | null;
  readonly environment: EnvironmentName;
  /** The UTC day on which the batches were sealed, `yyyy-mm-dd`. */
  readonly day: string;
  /** The metadata schema that the export is limited to; null if it ships all submissions. */
  readonly filterSchema: string | null;
  /** Counts up from 1 with each time that this day's manifest changes. */
  readonly revision: number;
  /**
   * Set once the day is over, all its batches are shipped, and so is everything before it: an earlier manifest ends where
   * this one begins, unless the export starts here.
   */
  readonly isComplete: boolean;
  /** In any order: the statement has them in order of log and first index. */
  readonly objects: readonly ManifestObject[];
  /** In any order: the statement has them in order of origin. At most one for each log. */
  readonly logs: readonly ManifestLog[];
};

/** One object of the day, which contains one batch's submissions. */
export type ManifestObject = {
  /** Relative to the manifest's folder: the batch's id and `.jsonl` or `.jsonl.gz`. */
  readonly name: string;
  /** SHA-256 of the object's bytes as stored, lower-case hex. */
  readonly sha256: string;
  readonly batchId: string;
  /** The origin of the batch's log. */
  readonly log: string;
  /** The log index of the batch's first leaf. */
  readonly firstIndex: number;
  /** The log's size at the batch's end. */
  readonly treeSize: number;
  /** Number of submissions, one per line; 0 if none of the batch matches the filter any more. */
  readonly submissions: number;
  /** The object's length as stored. */
  readonly bytes: number;
  readonly revision: number;
};

/**
 * The range of a log that a manifest covers: every batch within [from, to) that has matching submissions is among the
 * objects. Bounds are tree sizes at which batches end.
 */
export type ManifestLog = {
  readonly origin: string;
  /** Where the export starts in this log: nothing before it is ever shipped. 0 if it ships all of the log. */
  readonly start: number;
  /** The `to` of the manifest before, or `start`. */
  readonly from: number;
  readonly to: number;
};

/** Throws FormatError unless the fields are of the documented form and agree with each other. */
export function assertConsistent(fields: ManifestFields): void {
  const { exportId, project, day, filterSchema, revision, objects, logs } = fields;
  if (project === null) assertArchive(fields);
  else {
    assert(EXPORT_ID.test(exportId), 'export is not an export id');
    assert(PROJECT_ID.test(project), 'project is not a project id');
  }
  assert(isDay(day), 'day is not a date');
  assert(filterSchema === null || isSchemaName(filterSchema), 'filter_schema is not the name of a schema');
  assert(isPositive(revision), 'revision is not a positive integer');
  assert(new Set(logs.map(({ origin }) => origin)).size === logs.length, 'a log occurs twice');
  logs.forEach(assertLog);
  assert(new Set(objects.map(({ name }) => name)).size === objects.length, 'an object occurs twice');
  objects.forEach(assertObject);
  assertCovered(objects, logs);
}

/** An archive is of all leaves of one log. */
function assertArchive({ exportId, filterSchema, logs, objects }: ManifestFields): void {
  assert(ARCHIVE_ID.test(exportId), 'export is not the origin of a log');
  assert(filterSchema === null, 'an archive has a filter');
  assert(
    logs.length === 1 && logs[0]?.origin === exportId,
    'an archive is not of the log that it is named after',
  );
  for (const { submissions, firstIndex, treeSize } of objects)
    assert(submissions === treeSize - firstIndex, 'an archive lacks submissions of a batch');
}

function assertLog({ origin, start, from, to }: ManifestLog): void {
  assert(ORIGIN.test(origin), 'origin is not that of a log');
  const isOrdered = [start, from, to].every(isSize) && start <= from && from <= to;
  assert(isOrdered, 'start, from and to of a log are not sizes in this order');
}

function assertObject(object: ManifestObject): void {
  const { name, batchId, firstIndex, treeSize, submissions, bytes } = object;
  assert(BATCH_ID.test(batchId), 'batch_id is not a batch id');
  assert(
    ENDINGS.some((ending) => name === `${batchId}${ending}`),
    "an object's name is not its batch's id and .jsonl or .jsonl.gz",
  );
  assert(SHA256.test(object.sha256), 'sha256 is not a SHA-256 in lower-case hex');
  assert(isSize(firstIndex) && isSize(treeSize) && firstIndex < treeSize, 'a batch has no leaves');
  assert(isSize(submissions) && submissions <= treeSize - firstIndex, 'submissions do not fit the batch');
  assert(isSize(bytes), 'bytes is not a length');
  assert(isPositive(object.revision), 'revision is not a positive integer');
}

/** Asserts that every object lies within the range of its log, and that no two overlap. */
function assertCovered(objects: readonly ManifestObject[], logs: readonly ManifestLog[]): void {
  const ends = new Map(logs.map(({ origin, from }) => [origin, from]));
  const tos = new Map(logs.map(({ origin, to }) => [origin, to]));
  for (const { log, firstIndex, treeSize } of [...objects].sort((a, b) => a.firstIndex - b.firstIndex)) {
    const end = ends.get(log);
    const to = tos.get(log);
    assert(end !== undefined && to !== undefined, "an object's log is not among the logs");
    assert(firstIndex >= end, "objects overlap, or one begins before its log's range");
    assert(treeSize <= to, "an object ends after its log's range");
    ends.set(log, treeSize);
  }
}

function isDay(text: string): boolean {
  if (!DAY.test(text)) return false;
  const time = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text);
}

function isSchemaName(name: string): boolean {
  return name.length > 0 && name.length <= MAX_SCHEMA_LENGTH;
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function isPositive(value: number): boolean {
  return isSize(value) && value > 0;
}

function assert(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new FormatError(problem);
}
