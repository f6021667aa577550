import type { JsonValue } from '@bufbuild/protobuf';
import { jsonPointer } from '../../protocol/json-pointer.js';

/** What is wrong with a member whose name another of its object has. */
export const REPEATED_MEMBER = 'is there twice';

const MAX_FOUND = 100;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g;

/** How many members all objects of a value have together. */
export function countMembers(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  const names = Object.keys(value);
  count = names.length;
  for (const name of names) count += countMembers(value[name] as JsonValue);
  return count;
}

/** An object or array that is open: where in it the text stands, and of an object the names there were. */
type Place = { step: string | number; names: Set<string> | undefined; wantsName: boolean };

/** JSON pointers to the members of a valid JSON text whose name one before has, at most a hundred. */
export function findRepeatedMembers(json: string): string[] {
  const found = new Set<string>();
  const open: Place[] = [];
  for (const [token] of json.matchAll(TOKEN)) {
    const place = open.at(-1);
    if (token === '{') open.push({ step: '', names: new Set(), wantsName: true });
    else if (token === '[') open.push({ step: 0, names: undefined, wantsName: false });
    else if (token === '}' || token === ']') open.pop();
    else if (place !== undefined && token === ',') goOn(place);
    else if (place?.wantsName && isRepeated(place, token))
      found.add(jsonPointer(open.map(({ step }) => step)));
    if (found.size === MAX_FOUND) break;
  }
  return [...found];
}

function goOn(place: Place): void {
  if (typeof place.step === 'number') place.step++;
  else place.wantsName = true;
}

function isRepeated(place: Place, token: string): boolean {
  const name = JSON.parse(token) as string;
  place.step = name;
  place.wantsName = false;
  if (place.names?.has(name)) return true;
  place.names?.add(name);
  return false;
}
