import type { DescEnum, DescFile } from '@bufbuild/protobuf';
import { enumNames } from '../../protocol/enum-names.js';

/** TypeScript of the type `Spelling`: the texts of the values of each enum of these files that REST spells. */
export function spellingsCode(files: readonly DescFile[]): string {
  const spelled = files
    .map((file) => ({ file, enums: file.enums.filter((one) => enumNames(one).length > 0) }))
    .filter(({ enums }) => enums.length > 0);
  const imports = spelled.map(
    ({ file, enums }) =>
      `import type { ${enums.map(({ name }) => name).join(', ')} } from '../${file.name}_pb.js';`,
  );
  const cases = spelled.flatMap(({ enums }) => enums.map(caseOf));
  return [
    '// @generated from the option `spelling` of enum values',
    '',
    ...imports,
    '',
    '/** The texts by which REST spells the values of an enum; never for other types. */',
    'export type Spelling<E> =',
    ...cases,
    '  never;',
    '',
  ].join('\n');
}

function caseOf(desc: DescEnum): string {
  const texts = enumNames(desc).map((name) => `'${name}'`);
  return `  E extends ${desc.name} ? ${texts.join(' | ')} :`;
}
