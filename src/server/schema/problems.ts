import type { ErrorObject } from 'ajv/dist/2020.js';
import { pointerStep } from '../../protocol/json-pointer.js';
import { MAX_PROBLEMS, type Problem } from '../../protocol/problem.js';
import { isEmpty } from './absent.js';
import { summariseChoice } from './choices.js';
import { formatProblem } from './formats.js';
import type { Tolerance } from './tolerances.js';

/** The first hundred problems of metadata, with pointers relative to it, and how many there are. */
export type MetadataProblems = { errors: Problem[]; total: number };

/** A way in which metadata departs from its schema and is accepted, said for a person, and where. */
export type Departure = MetadataProblems & { what: string };

/** Sorting the places of tens of thousands of errors, as 64 KiB can have, takes longer than finding them. */
const MAX_SORTED = 1000;
const MAX_MESSAGE_LENGTH = 200;
const MAX_PATH_LENGTH = 512;

/** The errors of ajv in our words: one problem for each place, 1 to 100, and the number of places. */
export function toProblems(errors: readonly ErrorObject[]): MetadataProblems {
  const told = new Map<string, ErrorObject>();
  const counted = new Set<string>();
  for (const error of errors) {
    if (isNoProblem(error)) continue;
    const path = pathOf(error);
    const known = told.get(path);
    if (known !== undefined) {
      if (weightOf(error) > weightOf(known)) told.set(path, error);
    } else if (told.size < MAX_SORTED) told.set(path, error);
    else counted.add(path);
  }
  if (told.size === 0) return { errors: [{ path: '', message: 'fails its schema' }], total: 1 };
  const inOrder = firstOf([...told.keys()], MAX_PROBLEMS);
  return {
    errors: inOrder.map((path) => toProblem(path, told.get(path) as ErrorObject)),
    total: told.size + counted.size,
  };
}

/**
 * Divides the errors of ajv into those that one of the tolerances covers, as departures, and the others. Errors that only
 * say that a part failed are in neither.
 */
export function splitTolerated(
  errors: readonly ErrorObject[],
  tolerances: readonly Tolerance[],
): { departures: Departure[]; others: ErrorObject[] } {
  const kinds = tolerances.map(({ what, covers }) => ({ what, covers, covered: [] as ErrorObject[] }));
  const others: ErrorObject[] = [];
  for (const error of errors) {
    if (isNoProblem(error)) continue;
    const kind = kinds.find(({ covers }) => covers(error));
    (kind?.covered ?? others).push(error);
  }
  const present = kinds.filter(({ covered }) => covered.length > 0);
  return { departures: present.map(({ what, covered }) => ({ what, ...toProblems(covered) })), others };
}

/** Whether an error is that of an alternative, which has no keyword, or only says that a part failed. */
function isNoProblem({ keyword }: Partial<ErrorObject>): boolean {
  return keyword === undefined || keyword === 'if' || keyword === 'propertyNames';
}

/** The first of some pointers, in the order of their places as far as the validator comes near it. */
function firstOf(paths: string[], count: number): string[] {
  const keyed = paths.map((path) => [sortKey(path), path] as const);
  return keyed
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, count)
    .map(([, path]) => path);
}

/** Of several errors at one place the most specific is reported; of equals the first. */
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

/** The place that an error is about: a member that is missing or too many is one of its own. */
function pathOf(error: ErrorObject): string {
  const { instancePath } = error;
  const member = error.propertyName ?? memberOf(error);
  return boundPath(member === undefined ? instancePath : `${instancePath}/${pointerStep(member)}`);
}

function memberOf({ keyword, params }: ErrorObject): string | undefined {
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return params.missingProperty;
    case 'additionalProperties':
      return params.additionalProperty;
    case 'unevaluatedProperties':
      return params.unevaluatedProperty;
    default:
      return undefined;
  }
}

function toProblem(path: string, error: ErrorObject): Problem {
  const message = error.propertyName === undefined ? describe(error) : 'has a name that is not allowed';
  return { path, message: boundText(message) };
}

type Describe = (params: Record<string, unknown>, error: ErrorObject) => string;

const DESCRIPTIONS: Readonly<Record<string, Describe>> = {
  additionalProperties: () => 'is not a known member',
  anyOf: describeChoice,
  const: ({ allowedValue }) => `must be ${inText(allowedValue)}`,
  dependentRequired: ({ property }) => `is required beside ${inText(property)}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as unknown[]).map(inText).join(', ')}`,
  'false schema': () => 'is not allowed',
  format: ({ format }, { data }) => formatProblem(String(format), data),
  oneOf: describeChoice,
  required: () => 'is required',
  type: ({ type }) => `must be ${[type].flat().map(typeName).join(' or ')}`,
  unevaluatedProperties: () => 'is not a known member',
};

/** Whether an error is about a value that may have any content of a form, and is not to be without. */
function wantsContent({ keyword, params }: ErrorObject): boolean {
  const wantsOne = ['minItems', 'minLength', 'minProperties'].includes(keyword) && params.limit === 1;
  return wantsOne || keyword === 'format' || keyword === 'pattern';
}

function describe(error: ErrorObject): string {
  const { keyword, params, message } = error;
  if (wantsContent(error) && isEmpty(error.data)) return 'is empty';
  return DESCRIPTIONS[keyword]?.(params, error) ?? message ?? `fails ${keyword}`;
}

function describeChoice({ passingSchemas }: Record<string, unknown>, error: ErrorObject): string {
  if (Array.isArray(passingSchemas)) return 'has more than one of the allowed forms';
  const { names, types } = summariseChoice(error);
  if (names !== undefined) return `must have ${names.join(' or ')}`;
  if (types !== undefined) return `must be ${[...new Set(types)].map(typeName).join(' or ')}`;
  return 'has none of the allowed forms';
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

/** A pointer to the nearest place around it that is at most 512 characters long: names may be as long as metadata. */
function boundPath(path: string): string {
  return path.length <= MAX_PATH_LENGTH ? path : path.slice(0, path.lastIndexOf('/', MAX_PATH_LENGTH));
}

function boundText(text: string): string {
  if (text.length <= MAX_MESSAGE_LENGTH) return text;
  // Half of a surrogate pair at the end would be no UTF-8.
  return `${text.slice(0, MAX_MESSAGE_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
