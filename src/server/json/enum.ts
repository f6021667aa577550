import type { DescEnum } from '@bufbuild/protobuf';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';
import { report } from './problems.js';
import type { ValueCodec } from './value.js';

/**
 * How an enum is spelled: by the `spelling` option of its values. A value without one, and one that this build does
 * not know, never appears. Throws when no value has a spelling.
 *
 * @param admitted the spellings that the field's rules admit, which callers are told of
 */
export function enumCodec(desc: DescEnum, admitted: readonly string[]): ValueCodec {
  const texts = enumNames(desc);
  if (texts.length === 0) throw new Error(`no value of ${desc.typeName} has a spelling`);
  const numbers = new Map(texts.map((text) => [text, findEnumNumber(desc, text)]));
  if (numbers.size < texts.length) throw new Error(`two values of ${desc.typeName} share a spelling`);
  const byNumber = new Map([...numbers].map(([text, number]) => [number, JSON.stringify(text)]));
  const expected = `must be one of ${admitted.join(', ')}`;
  return {
    write: (value) => byNumber.get(value as number) ?? '',
    read: (json, reading) => {
      const number = typeof json === 'string' ? numbers.get(json) : undefined;
      return number ?? report(reading, expected);
    },
  };
}
