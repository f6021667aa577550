import { type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { isJsonObject, type ValueCodec, type ValueReader } from './field.js';
import { type Reading, report } from './problems.js';
import { FORBIDDEN_TEXT, scalarCodec } from './scalar-codec.js';
import { isForbiddenText } from './strict-json.js';

const INTEGER = /^(?:0|-?[1-9]\d{0,15})$/;

/** A JSON array; items without JSON are left out. */
export function listCodec(item: ValueCodec): ValueCodec {
  return {
    write: (values) => {
      let out = '';
      for (const value of values as readonly unknown[]) {
        const text = item.write(value);
        if (text !== '') out += out === '' ? text : `,${text}`;
      }
      return `[${out}]`;
    },
    read: (json, reading) =>
      Array.isArray(json) ? readItems(json, item.read, reading) : report(reading, 'must be an array'),
  };
}

function readItems(json: readonly JsonValue[], read: ValueReader, reading: Reading): unknown[] {
  return json.map((item, index) => {
    reading.path.push(index);
    const value = read(item, reading);
    reading.path.pop();
    return value;
  });
}

/** A JSON object by the map's keys; values without JSON are left out. */
export function mapCodec(keyType: ScalarType, item: ValueCodec): ValueCodec {
  const findKeyProblem = keyCheck(keyType);
  return {
    write: (map) => {
      let out = '';
      for (const [key, value] of Object.entries(map as object)) {
        const text = item.write(value);
        if (text !== '') out += `${out === '' ? '' : ','}${JSON.stringify(key)}:${text}`;
      }
      return `{${out}}`;
    },
    read: (json, reading) => {
      if (!isJsonObject(json)) return report(reading, 'must be an object');
      const map: Record<string, unknown> = {};
      for (const key of Object.keys(json)) {
        reading.path.push(key);
        const problem = findKeyProblem(key);
        if (problem === undefined) map[key] = item.read(json[key] as JsonValue, reading);
        else report(reading, problem);
        reading.path.pop();
      }
      return map;
    },
  };
}

/** Returns the check of a key, which returns a problem or undefined. In JSON keys of every type are strings. */
function keyCheck(type: ScalarType): (key: string) => string | undefined {
  if (type === ScalarType.BOOL) {
    return (key) => (key === 'true' || key === 'false' ? undefined : 'must be named true or false');
  }
  if (type === ScalarType.STRING) {
    return (key) => {
      // Assigning it would set the prototype, here and wherever the message is copied.
      if (key === '__proto__') return 'must not be named __proto__';
      return isForbiddenText(key) ? FORBIDDEN_TEXT : undefined;
    };
  }
  const { read } = scalarCodec(type, false);
  return (key) => {
    const isInRange = INTEGER.test(key) && read(Number(key), { path: [], problems: [] }) !== undefined;
    return isInRange ? undefined : 'must be named by an integer in range';
  };
}
