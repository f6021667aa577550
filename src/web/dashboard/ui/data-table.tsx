import type { DescMethod } from '@bufbuild/protobuf';
import type { ComponentChildren } from 'preact';
import { useMay } from '../scope.js';

/** On narrow screens the elements are laid out as blocks, of which some browsers take away what they are. */
const ROLES = {
  table: { role: 'table' },
  group: { role: 'rowgroup' },
  row: { role: 'row' },
  header: { role: 'columnheader' },
  cell: { role: 'cell' },
} as const;

/** A column of a {@link DataTable}. */
export type Column<T> = {
  header: string;
  /** The RPCs that its buttons lead to: the column shows to those who may call one of them. */
  calls?: readonly DescMethod[];
  cell: (row: T) => ComponentChildren;
};

type Props<T> = { label: string; columns: Column<T>[]; data: T[]; idOf: (row: T) => string };

/** A table that scrolls sideways in itself if it must. On narrow screens each row is a card. */
export function DataTable<T>({ label, columns: all, data, idOf }: Props<T>) {
  const may = useMay();
  const columns = all.filter(({ calls }) => calls?.some(may) ?? true);
  return (
    <div class="table-box">
      <table aria-label={label} {...ROLES.table}>
        <thead {...ROLES.group}>
          <tr {...ROLES.row}>
            {columns.map(({ header }) => (
              <th key={header} scope="col" {...ROLES.header}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody {...ROLES.group}>
          {data.map((row) => (
            <tr key={idOf(row)} {...ROLES.row}>
              {columns.map(({ header, cell }) => (
                <td key={header} data-label={header} {...ROLES.cell}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
