import { hash } from 'node:crypto';
import type { EnvironmentName } from '../../../../protocol/environment.js';
import { maxTemplateBytes, type TextTemplate, writeTemplate } from '../../../json/template.js';
import { STATEMENT_AT, writeHead } from './leaf-text.js';
import { STATEMENT_VALUES, statementTemplate, statementValues } from './statement-template.js';

/** A leaf's statement. Its hashes are in `hex` at the places given, in 64 lower-case digits each. */
type StatementSource = {
  id: string;
  projectId: string;
  schema: string;
  /** RFC 3339 in UTC with milliseconds. */
  submittedAt: string;
  hex: Buffer;
  commitmentAt: number;
  artifactAt: number;
};

/** A statement's pre-authentication encoding, in which the statements of leaves like it are written one after the other. */
type Sheet = {
  like: StatementSource;
  idBytes: number;
  text: Buffer;
  preAuth: Buffer;
  /** Where `text` has each of the statement's values. */
  places: readonly number[];
};

const HASH_DIGITS = 64;
const ANY_HASH = '0'.repeat(HASH_DIGITS);

/**
 * Creates a function that returns the SHA-256 of the pre-authentication encoding of a statement in base64. Statements of one
 * project and schema differ in four values of fixed lengths, and only these are written: 2.1 µs, of which the hash takes 1.2,
 * by way of the statement's text 4.9. When two projects alternate it takes 3.0.
 */
export function createStatementHasher(environment: EnvironmentName): (source: StatementSource) => string {
  const template = statementTemplate(environment);
  const sheets = new Map<string, Sheet>();
  let sheet: Sheet | undefined;
  return (source) => {
    if (sheet === undefined || !isLike(sheet.like, source)) sheet = findSheet(sheets, template, source);
    const { text, places, preAuth, idBytes } = sheet;
    const { hex, commitmentAt, artifactAt, id, submittedAt } = source;
    const at = (value: keyof typeof STATEMENT_VALUES) => places[STATEMENT_VALUES[value]] as number;
    hex.copy(text, at('commitment'), commitmentAt, commitmentAt + HASH_DIGITS);
    hex.copy(text, at('artifact'), artifactAt, artifactAt + HASH_DIGITS);
    const written = text.write(id, at('id')) + text.write(submittedAt, at('submittedAt'));
    if (written !== idBytes + submittedAt.length)
      throw new Error(`${id} is longer than others of its length`);
    return hash('sha256', preAuth, 'base64');
  };
}

function findSheet(sheets: Map<string, Sheet>, template: TextTemplate, like: StatementSource): Sheet {
  const { id, projectId, schema, submittedAt } = like;
  const kind = JSON.stringify([Buffer.byteLength(id), submittedAt.length, projectId, schema]);
  const sheet = sheets.get(kind) ?? prepareSheet(template, like);
  sheets.set(kind, sheet);
  return sheet;
}

function isLike(a: StatementSource, b: StatementSource): boolean {
  return (
    a.schema === b.schema &&
    a.projectId === b.projectId &&
    a.id.length === b.id.length &&
    a.submittedAt.length === b.submittedAt.length
  );
}

function prepareSheet(template: TextTemplate, like: StatementSource): Sheet {
  const { id, projectId, schema, submittedAt } = like;
  const values = statementValues({
    submissionId: id,
    project: projectId,
    schema,
    submittedAt,
    commitment: ANY_HASH,
    artifactSha256: ANY_HASH,
  });
  const text = Buffer.allocUnsafe(STATEMENT_AT + maxTemplateBytes(template, values));
  const end = writeTemplate(template, values, text, STATEMENT_AT);
  const preAuth = text.subarray(writeHead(text, end), end);
  return { like, idBytes: Buffer.byteLength(id), text, preAuth, places: placesOf(template, values) };
}

function placesOf({ pieces, gaps }: TextTemplate, values: readonly string[]): number[] {
  const places: number[] = [];
  let at = STATEMENT_AT;
  for (const [i, gap] of gaps.entries()) {
    at += (pieces[i] as Uint8Array).length;
    places[gap] = at;
    at += Buffer.byteLength(values[gap] as string);
  }
  return places;
}
