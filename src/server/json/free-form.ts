import type { JsonValue } from '@bufbuild/protobuf';
import { canonicalJson } from '../../proof/bytes/jcs.js';
import { type Reading, report } from './problems.js';
import { FORBIDDEN_TEXT } from './scalar.js';
import { isForbiddenText } from './strict-json.js';
import type { ValueReader } from './value.js';

/** Makes the reader of a value of any form out of what makes a message of it. The value's depth must be bounded. */
export function freeFormReader(convert: (json: JsonValue) => unknown): ValueReader {
  return (json, reading) => {
    const known = reading.problems.length;
    checkFreeForm(json, reading);
    return reading.problems.length === known ? convert(json) : undefined;
  };
}

/** The value as canonical JSON (RFC 8785). */
export function writeCanonical(value: unknown): string {
  const text = canonicalJson(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

/** Notes every text and number in a value that neither canonical JSON nor the database can hold. */
export function checkFreeForm(json: JsonValue, reading: Reading): void {
  if (typeof json === 'string') checkText(json, reading);
  // JSON.parse makes Infinity of 1e999.
  else if (typeof json === 'number' && !Number.isFinite(json)) report(reading, 'is out of range');
  else if (Array.isArray(json)) {
    for (let index = 0; index < json.length; index++) checkAt(index, json[index] as JsonValue, reading);
  } else if (typeof json === 'object' && json !== null) {
    for (const name of Object.keys(json)) checkAt(name, json[name] as JsonValue, reading);
  }
}

function checkAt(step: string | number, json: JsonValue, reading: Reading): void {
  reading.path.push(step);
  if (typeof step === 'string') checkText(step, reading);
  checkFreeForm(json, reading);
  reading.path.pop();
}

/** Notes a text that cannot be stored. */
export function checkText(text: string, reading: Reading): void {
  if (isForbiddenText(text)) report(reading, FORBIDDEN_TEXT);
}
