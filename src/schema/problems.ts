import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ErrorObject } from 'ajv/dist/2020.js';
import { formatProblem } from './formats.js';

/** One thing wrong with metadata: where, as a JSON pointer (RFC 6901) relative to it, and what. */
export type MetadataProblem = { path: string; message: string };

/** What is wrong with metadata: the first hundred places, and how many there are. */
export type MetadataProblems = { errors: MetadataProblem[]; total: number };

const MAX_PROBLEMS = 100;
/** Sorting the places of tens of thousands of errors, as 64 KiB can have, takes longer than finding them. */
const MAX_SORTED = 1000;
const MAX_MESSAGE_LENGTH = 200;
const MAX_PATH_LENGTH = 512;

/** What ajv found, in our words: by place, one problem each, at most 100 and at least one; and of how many places. */
export function toProblems(errors: readonly ErrorObject[], metadata: JsonObject): MetadataProblems {
  const byPlace = new Map<string, ErrorObject>();
  for (const error of withoutChoices(errors)) {
    const path = pathOf(error);
    const known = byPlace.get(path);
    if (known === undefined || weightOf(error) > weightOf(known)) byPlace.set(path, error);
  }
  if (byPlace.size === 0) return { errors: [{ path: '', message: 'fails its schema' }], total: 1 };
  const inOrder = firstOf([...byPlace.keys()], MAX_PROBLEMS);
  return {
    errors: inOrder.map((path) => toProblem(path, byPlace.get(path) as ErrorObject, metadata)),
    total: byPlace.size,
  };
}

/** The first of some pointers, in the order of their places as far as the validator comes near it. */
function firstOf(paths: string[], count: number): string[] {
  const keyed = paths.slice(0, MAX_SORTED).map((path) => [sortKey(path), path] as const);
  return keyed
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, count)
    .map(([, path]) => path);
}

/** Of several errors at one place the one that says most is told: of equals the first. */
function weightOf({ keyword }: ErrorObject): number {
  return keyword === 'anyOf' || keyword === 'oneOf'
    ? 2
    : keyword === 'type' || keyword === 'required'
      ? 1
      : 0;
}

/** The pointer with its array indices in equal width, so that texts come in the order of numbers. */
function sortKey(path: string): string {
  return path.replace(/\/(\d{1,9})(?=\/|$)/g, (_, digits: string) => `/${digits.padStart(9, '0')}`);
}

/**
 * Leaves out what only says that a part failed, and makes one error of a choice: ajv reports those of each alternative
 * just before that of the choice, and what they ask for is not asked for together.
 */
function withoutChoices(errors: readonly ErrorObject[]): ErrorObject[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    if (error.keyword === 'if' || error.keyword === 'propertyNames') continue;
    if (error.keyword === 'anyOf' || error.keyword === 'oneOf') {
      Object.assign(error.params, summarise(takeAlternatives(kept, error), error));
    }
    kept.push(error);
  }
  return kept;
}

/** Takes the errors of a choice's alternatives off the end. */
function takeAlternatives(kept: ErrorObject[], { schemaPath, instancePath }: ErrorObject): ErrorObject[] {
  let start = kept.length;
  while (start > 0) {
    const before = kept[start - 1] as ErrorObject;
    if (!before.schemaPath.startsWith(`${schemaPath}/`) || !before.instancePath.startsWith(instancePath))
      break;
    start--;
  }
  return kept.splice(start);
}

/** What a choice is about where that is one thing: the names of members, or the types of the value. */
function summarise(
  alternatives: readonly ErrorObject[],
  { instancePath }: ErrorObject,
): { names?: unknown[]; types?: unknown[] } {
  const areAll = (keyword: string) =>
    alternatives.every((error) => error.keyword === keyword && error.instancePath === instancePath);
  if (alternatives.length === 0) return {};
  if (areAll('required')) return { names: alternatives.map(({ params }) => params.missingProperty) };
  return areAll('type') ? { types: alternatives.flatMap(({ params }) => params.type) } : {};
}

/** The place that an error is about: a member that is missing or too many is one of its own. */
function pathOf({ params, propertyName, instancePath }: ErrorObject): string {
  const member =
    propertyName ?? params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty;
  return boundPath(member === undefined ? instancePath : `${instancePath}/${escapeStep(String(member))}`);
}

function toProblem(path: string, error: ErrorObject, metadata: JsonObject): MetadataProblem {
  const message =
    error.propertyName === undefined ? describe(error, metadata) : 'has a name that is not allowed';
  return { path, message: boundText(message) };
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

function describeChoice({ names, types, passingSchemas }: Record<string, unknown>): string {
  if (Array.isArray(names)) return `must have ${names.map(inText).join(' or ')}`;
  if (Array.isArray(types)) return `must be ${[...new Set(types)].map(typeName).join(' or ')}`;
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
