import type { DescMessage, JsonValue } from '@bufbuild/protobuf';
import { type Fields, isJsonObject } from '../../json/field.js';
import { type Reading, report, reportAt } from '../../json/problems.js';
import { findFieldPath, findTextSetter } from './field-path.js';
import type { Template, Variable } from './http-rule.js';
import { decodeExceptSlash, decodePercent } from './percent.js';

/** A JSON body and the field of the message that it is, undefined when it is the whole message. */
export type BodyJson = { value: JsonValue; field: string | undefined };

/** Sets the fields that a path gives, from its segments as they were sent; the body must not give them again. */
type PathReader = (
  segments: readonly string[],
  message: Fields,
  reading: Reading,
  body: BodyJson | undefined,
) => void;

/** Makes the reader of a template's variables. Throws if one is no field, or of a type that text cannot represent. */
export function compilePathReader(desc: DescMessage, template: Template): PathReader {
  const variables = template.variables.map((variable) => compileVariable(desc, variable));
  return (segments, message, reading, body) => {
    for (const read of variables) read(segments, message, reading, body);
  };
}

function compileVariable(desc: DescMessage, variable: Variable): PathReader {
  const { fieldPath } = variable;
  const name = fieldPath.join('.');
  const fields = findFieldPath(desc, fieldPath);
  const leaf = fields?.at(-1);
  if (fields === undefined || leaf === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
  const isScalar = leaf.fieldKind === 'scalar' || leaf.fieldKind === 'enum';
  const set = isScalar ? findTextSetter(fields) : undefined;
  if (set === undefined) throw new Error(`${name} is repeated or a message: no path can hold it`);
  return (segments, message, reading, body) => {
    const text = variableText(variable, segments);
    const given = body && findMember(body, fieldPath);
    if (given !== undefined) {
      report({ path: given, problems: reading.problems }, 'is given by the path');
    } else if (text === undefined) {
      reportAt(reading, name, 'is not percent-encoded UTF-8');
    } else {
      reading.path.push(name);
      set(text, message, reading);
      reading.path.pop();
    }
  };
}

/** The decoded text of a variable; undefined when its encoding is malformed. */
function variableText({ start, end, isMulti }: Variable, segments: readonly string[]): string | undefined {
  if (!isMulti) return decodePercent(segments[start] ?? '');
  return decodeExceptSlash(segments.slice(start, end).join('/'));
}

/** The way through the body to the member that a field path names, if the body has it. */
function findMember({ value, field }: BodyJson, fieldPath: readonly string[]): string[] | undefined {
  if (field !== undefined && fieldPath[0] !== field) return undefined;
  const path = field === undefined ? [...fieldPath] : fieldPath.slice(1);
  let at: JsonValue | undefined = value;
  for (const name of path) {
    if (at === undefined || !isJsonObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return path;
}
