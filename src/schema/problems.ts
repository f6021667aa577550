import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ErrorObject } from 'ajv/dist/2020.js';
import { formatProblem } from './formats.js';

/** One thing wrong with metadata: where, as a JSON pointer (RFC 6901) relative to it, and what. */
export type MetadataProblem = { path: string; message: string };

const MAX_PROBLEMS = 100;
const MAX_MESSAGE_LENGTH = 200;
const MAX_PATH_LENGTH = 512;
/** More than this many of ajv's errors are not looked at: 64 KiB of metadata can make tens of thousands. */
const MAX_ERRORS = 1000;

/** What ajv found, in our words: by place, each once, at most 100 and at least one. */
export function toProblems(errors: readonly ErrorObject[], metadata: JsonObject): MetadataProblem[] {
  const problems = new Map<string, MetadataProblem>();
  for (const error of withoutChoices(errors.slice(0, MAX_ERRORS))) {
    const problem = toProblem(error, metadata);
    problems.set(`${sortKey(problem.path)}\n${problem.path}\n${problem.message}`, problem);
  }
  if (problems.size === 0) return [{ path: '', message: 'fails its schema' }];
  const inOrder = [...problems].sort(([a], [b]) => (a < b ? -1 : 1));
  return inOrder.slice(0, MAX_PROBLEMS).map(([, problem]) => problem);
}

/** The pointer with its array indices in equal width, so that texts come in the order of numbers. */
function sortKey(path: string): string {
  return path.replace(/\/(\d{1,9})(?=\/|$)/g, (_, digits: string) => `/${digits.padStart(9, '0')}`);
}

/**
 * Leaves out what only says that a part failed, and makes one error of a choice between members of which none is
 * there: ajv reports one for each, just before that of the choice.
 */
function withoutChoices(errors: readonly ErrorObject[]): ErrorObject[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    if (error.keyword === 'if' || error.keyword === 'propertyNames') continue;
    if (error.keyword === 'anyOf' || error.keyword === 'oneOf') {
      const names = takeMissing(kept, error);
      kept.push(names.length === 0 ? error : { ...error, params: { ...error.params, names } });
    } else kept.push(error);
  }
  return kept;
}

/** Takes the errors of a choice off the end when each says that a member is missing; the members' names. */
function takeMissing(kept: ErrorObject[], choice: ErrorObject): string[] {
  const isOfChoice = (error: ErrorObject) => error.schemaPath.startsWith(`${choice.schemaPath}/`);
  const start = kept.findLastIndex(
    (error) => !(isOfChoice(error) && error.instancePath.startsWith(choice.instancePath)),
  );
  const ofChoice = kept.slice(start + 1);
  const isMissing = (error: ErrorObject) =>
    error.keyword === 'required' && error.instancePath === choice.instancePath;
  if (!ofChoice.every(isMissing)) return [];
  kept.length = start + 1;
  return ofChoice.map((error) => String(error.params.missingProperty));
}

function toProblem(error: ErrorObject, metadata: JsonObject): MetadataProblem {
  const { params, propertyName } = error;
  const member =
    propertyName ?? params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty;
  const path =
    member === undefined ? error.instancePath : `${error.instancePath}/${escapeStep(String(member))}`;
  const message = propertyName === undefined ? describe(error, metadata) : `has a name that is not allowed`;
  return { path: boundPath(path), message: boundText(message) };
}

type Describe = (params: Record<string, unknown>, value: JsonValue | undefined) => string;

const DESCRIPTIONS: Readonly<Record<string, Describe>> = {
  additionalProperties: () => 'is not a known member',
  anyOf: describeChoice,
  const: ({ allowedValue }) => `must be ${inText(allowedValue)}`,
  dependentRequired: ({ property }) => `is required beside ${inText(property)}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as unknown[]).map(inText).join(', ')}`,
  'false schema': () => 'is not allowed',
  format: ({ format }, value) => formatProblem(String(format), value),
  oneOf: describeChoice,
  required: () => 'is required',
  type: ({ type }) => `must be ${[type].flat().map(typeName).join(' or ')}`,
  unevaluatedProperties: () => 'is not a known member',
};

function describe({ keyword, params, instancePath, message }: ErrorObject, metadata: JsonObject): string {
  const known = DESCRIPTIONS[keyword];
  if (known === undefined) return message ?? `fails ${keyword}`;
  return known(params, keyword === 'format' ? valueAt(metadata, instancePath) : undefined);
}

function describeChoice({ names, passingSchemas }: Record<string, unknown>): string {
  if (Array.isArray(names)) return `must have ${names.map(inText).join(' or ')}`;
  return Array.isArray(passingSchemas)
    ? 'has more than one of the allowed forms'
    : 'has none of the allowed forms';
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'an array',
  boolean: 'true or false',
  integer: 'an integer',
  null: 'null',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

function typeName(type: unknown): string {
  return TYPE_NAMES[String(type)] ?? String(type);
}

function inText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function escapeStep(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function valueAt(metadata: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = metadata;
  for (const step of path.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    value = (value as JsonObject)[name];
  }
  return value;
}

/** A pointer to the nearest place around it that is at most 512 characters long: names may be as long as metadata. */
function boundPath(path: string): string {
  return path.length <= MAX_PATH_LENGTH ? path : path.slice(0, path.lastIndexOf('/', MAX_PATH_LENGTH));
}

function boundText(text: string): string {
  if (text.length <= MAX_MESSAGE_LENGTH) return text;
  // Half of a surrogate pair at the end would be no UTF-8.
  return `${text.slice(0, MAX_MESSAGE_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
