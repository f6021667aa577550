import type { ComponentChildren } from 'preact';

/** On narrow screens the elements are laid out as blocks, of which some browsers take away what they are. */
const ROLES = {
  table: { role: 'table' },
  group: { role: 'rowgroup' },
  row: { role: 'row' },
  header: { role: 'columnheader' },
  cell: { role: 'cell' },
} as const;

/** A column of a {@link DataTable}. */
export type Column<T> = { header: string; cell: (row: T) => ComponentChildren };

type Props<T> = { label: string; columns: Column<T>[]; data: T[]; idOf: (row: T) => string };

/** A table that scrolls sideways in itself if it must. On narrow screens each row is a card. */
export function DataTable<T>({ label, columns, data, idOf }: Props<T>) {
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
