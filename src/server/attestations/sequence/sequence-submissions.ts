import type { WindowUse } from '../../core/rate-window.js';
import type { Pool } from '../../database/connect.js';
import type { NewStatement } from '../statements/stored-statement.js';

/** A submission to append. Times are in Unix milliseconds, binary values in lower-case hex, which SQL takes as it is. */
export type NewSubmission = {
  id: string;
  projectId: string;
  apiKeyId: string;
  submittedAtMs: number;
  artifactSha256: string;
  schema: string;
  /** JCS text. */
  metadata: string;
  /** JSON text of the metadata's problems; null if it is valid. */
  metadataErrors: string | null;
  /** The label of its build; null if it has none. */
  build: string | null;
  /** The signed statement, if it is more than the row. */
  statement: NewStatement | null;
  /** Null as the commitment if the statement is public. */
  salt: string | null;
  commitment: string | null;
  dsseKeyId: number;
  signature: string;
  leafHash: string;
  idempotency: { key: string; requestHash: string } | undefined;
  limits: SubmissionLimits;
  /** The limits of the project, over all its API keys; undefined: none. */
  ceiling?: SubmissionLimits | undefined;
};

type SubmissionLimits = { perSecond: number; perHour: number; perDay: number };

/** The outcome of a row: the SQL type `submission_outcome`. */
export const SubmissionOutcome = {
  STORED: 'stored',
  REPLAYED: 'replayed',
  KEY_REUSED: 'key_reused',
  BUSY: 'busy',
  LIMITED: 'limited',
} as const;

/**
 * The result of one row. `resourceId` is the id of the stored or replayed submission. `use`, of the API key, is undefined
 * if the row was not counted, and `projectUse` if its project has no ceiling; rows of one key or project share them.
 */
export type SequencedRow = {
  outcome: (typeof SubmissionOutcome)[keyof typeof SubmissionOutcome];
  resourceId: string | null;
  logIndex: number | null;
  use: WindowUse | undefined;
  projectUse?: WindowUse | undefined;
};

/** SQLSTATE raised when the log is frozen. */
export const FROZEN_SQLSTATE = 'ATFRZ';

/** The result of `append_submissions`: no outcomes if all rows were stored, and a null outcome of each that was. */
type Appended = {
  first_index: number | null;
  use: ({ second: number; n_second: number; n_hour: number; n_day: number } | null)[];
  outcome: (SequencedRow['outcome'] | null)[] | null;
  resource_id: (string | null)[] | null;
  log_index: (number | null)[] | null;
};

const PARAMETERS = [
  'p_log_id',
  'p_is_retry',
  'p_retention_ms',
  ...['p_api_key_id', 'p_project_id', 'p_limit_second', 'p_limit_hour', 'p_limit_day'],
  ...['p_key', 'p_id', 'p_submitted_ms', 'p_schema', 'p_dsse_key_id', 'p_bytes'],
  ...['p_metadata', 'p_metadata_errors', 'p_idempotency_key', 'p_request_hash', 'p_build'],
  ...['p_statement_version', 'p_statement', 'p_digest', 'p_shown', 'p_subjects'],
];
const CALL = `SELECT * FROM append_submissions(${PARAMETERS.map((name, i) => `${name} => $${i + 1}`).join(', ')}, p_knows_numbers => true)`;

/**
 * Appends rows to a log by one call of `append_submissions`, which is one transaction: they are durable when it returns.
 *
 * @param isRetry true if an earlier call with the same ids may have committed
 * @returns one result per row, in order
 */
export async function sequenceSubmissions(
  pool: Pool,
  logId: number,
  rows: readonly NewSubmission[],
  isRetry: boolean,
  retentionMs: number,
): Promise<SequencedRow[]> {
  const { keys, keyOf } = collectKeys(rows);
  const ceilings = collectCeilings(keys);
  const counted = [...keys, ...ceilings.values()];
  const parameters = [logId, isRetry, retentionMs, ...keyArrays(counted), ...rowArrays(rows, keyOf)];
  const [result] = await pool.unsafe<Appended[]>(CALL, parameters, { prepare: true });
  if (result === undefined) throw new Error('append_submissions returned nothing');
  const places = new Map([...ceilings.keys()].map((projectId, n) => [projectId, keys.length + n]));
  const projectOf = keys.map(({ projectId }) => places.get(projectId));
  return readResults(rows, { keyOf, projectOf }, result);
}

type Key = Pick<NewSubmission, 'apiKeyId' | 'projectId' | 'limits' | 'ceiling'>;

/** The API keys of the rows, each once with the lowest of its limits, and the place of each row's key among them. */
function collectKeys(rows: readonly NewSubmission[]): { keys: Key[]; keyOf: number[] } {
  const keys: Key[] = [];
  const places = new Map<string, number>();
  const keyOf = rows.map((row) => {
    const known = places.get(row.apiKeyId);
    if (known === undefined) {
      places.set(row.apiKeyId, keys.length);
      return keys.push(row) - 1;
    }
    const key = keys[known] as Key;
    if (key.limits !== row.limits) keys[known] = { ...key, limits: lowest(key.limits, row.limits) };
    return known;
  });
  return { keys, keyOf };
}

/** The projects of the keys that have a ceiling, each once with the lowest that a key knows of, counted as keys are. */
function collectCeilings(keys: readonly Key[]): Map<string, Key> {
  const ceilings = new Map<string, Key>();
  for (const { projectId, ceiling } of keys) {
    if (ceiling === undefined) continue;
    const known = ceilings.get(projectId);
    const limits = known === undefined ? ceiling : lowest(known.limits, ceiling);
    ceilings.set(projectId, { apiKeyId: projectId, projectId, limits });
  }
  return ceilings;
}

function lowest(a: SubmissionLimits, b: SubmissionLimits): SubmissionLimits {
  return {
    perSecond: Math.min(a.perSecond, b.perSecond),
    perHour: Math.min(a.perHour, b.perHour),
    perDay: Math.min(a.perDay, b.perDay),
  };
}

function keyArrays(keys: readonly Key[]): string[] {
  return [
    textArray(keys.map(({ apiKeyId }) => apiKeyId)),
    textArray(keys.map(({ projectId }) => projectId)),
    array(keys.map(({ limits }) => limits.perSecond)),
    array(keys.map(({ limits }) => limits.perHour)),
    array(keys.map(({ limits }) => limits.perDay)),
  ];
}

/** Written here and not by the driver, which escapes every element of an array, and takes hex only as bytes. */
function rowArrays(rows: readonly NewSubmission[], keyOf: readonly number[]): (string | null)[] {
  const hasErrors = rows.some(({ metadataErrors }) => metadataErrors !== null);
  const hasBuilds = rows.some(({ build }) => build !== null);
  const hasKeys = rows.some(({ idempotency }) => idempotency !== undefined);
  return [
    array(keyOf.map((place) => place + 1)),
    textArray(rows.map(({ id }) => id)),
    array(rows.map(({ submittedAtMs }) => submittedAtMs)),
    textArray(rows.map(({ schema }) => schema)),
    array(rows.map(({ dsseKeyId }) => dsseKeyId)),
    byteaArray(
      rows.map(
        (row) =>
          row.artifactSha256 +
          (row.salt ?? NO_HASH) +
          (row.commitment ?? NO_HASH) +
          row.leafHash +
          row.signature,
      ),
    ),
    // JSON without whitespace has no line break.
    rows.map(({ metadata }) => metadata).join('\n'),
    hasErrors ? textArray(rows.map(({ metadataErrors }) => metadataErrors)) : null,
    hasKeys ? textArray(rows.map(({ idempotency }) => idempotency?.key ?? null)) : null,
    hasKeys ? byteaArray(rows.map(({ idempotency }) => idempotency?.requestHash ?? null)) : null,
    hasBuilds ? textArray(rows.map(({ build }) => build)) : null,
    ...statementArrays(rows.map(({ statement }) => statement)),
  ];
}

const NO_HASH = '0'.repeat(64);

function statementArrays(statements: readonly (NewStatement | null)[]): (string | null)[] {
  if (statements.every((statement) => statement === null)) return [null, null, null, null, null];
  return [
    `{${statements.map((statement) => statement?.version ?? 'NULL').join(',')}}`,
    // JCS has no line break.
    statements.map((statement) => statement?.text ?? '').join('\n'),
    byteaArray(statements.map((statement) => statement?.digest ?? null)),
    textArray(statements.map((statement) => statement && JSON.stringify(statement.shown))),
    textArray(statements.map((statement) => statement && byteaArray(statement.subjects))),
  ];
}

function array(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}

function byteaArray(hex: readonly (string | null)[]): string {
  return `{${hex.map((one) => (one === null ? 'NULL' : `"\\\\x${one}"`)).join(',')}}`;
}

function textArray(texts: readonly (string | null)[]): string {
  return `{${texts.map((text) => (text === null ? 'NULL' : quote(text))).join(',')}}`;
}

const NEEDS_ESCAPE = /["\\]/;

function quote(text: string): string {
  return `"${NEEDS_ESCAPE.test(text) ? text.replaceAll(/["\\]/g, '\\$&') : text}"`;
}

function readResults(
  rows: readonly NewSubmission[],
  { keyOf, projectOf }: { keyOf: readonly number[]; projectOf: readonly (number | undefined)[] },
  { first_index: firstIndex, use, outcome, resource_id: resourceId, log_index: logIndex }: Appended,
): SequencedRow[] {
  const uses = use.map(toWindowUse);
  return rows.map((row, i) => {
    const key = keyOf[i] as number;
    const used = uses[key];
    const project = projectOf[key];
    const projectUse = project === undefined ? undefined : uses[project];
    if (outcome === null)
      return {
        outcome: SubmissionOutcome.STORED,
        resourceId: row.id,
        logIndex: (firstIndex as number) + i,
        use: used,
        projectUse,
      };
    const decided = outcome[i] ?? null;
    const isCounted = decided === null || decided === SubmissionOutcome.LIMITED;
    return {
      outcome: decided ?? SubmissionOutcome.STORED,
      resourceId: resourceId?.[i] ?? null,
      logIndex: logIndex?.[i] ?? null,
      use: isCounted ? used : undefined,
      projectUse: isCounted ? projectUse : undefined,
    };
  });
}

function toWindowUse(use: Appended['use'][number]): WindowUse | undefined {
  if (use === null) return undefined;
  return { second: use.second, nSecond: use.n_second, nHour: use.n_hour, nDay: use.n_day };
}
