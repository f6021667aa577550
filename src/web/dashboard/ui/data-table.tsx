import { type ColumnDef, tableFeatures, useTable } from '@tanstack/react-table';

const features = tableFeatures({});

/** On narrow screens the elements are laid out as blocks, of which some browsers take away what they are. */
const ROLES = {
  table: { role: 'table' },
  group: { role: 'rowgroup' },
  row: { role: 'row' },
  header: { role: 'columnheader' },
  cell: { role: 'cell' },
} as const;

/** A column of a {@link DataTable}; keep columns at module scope or memoised. */
export type Column<T extends object> = ColumnDef<typeof features, T>;

type Props<T extends object> = { label: string; columns: Column<T>[]; data: T[]; idOf: (row: T) => string };

/** A table that scrolls sideways in itself if it must. On narrow screens each row is a card. */
export function DataTable<T extends object>({ label, columns, data, idOf }: Props<T>) {
  const table = useTable({ features, columns, data, getRowId: idOf });
  return (
    <div className="table-box">
      <table aria-label={label} {...ROLES.table}>
        <thead {...ROLES.group}>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} {...ROLES.row}>
              {group.headers.map((header) => (
                <th key={header.id} scope="col" {...ROLES.header}>
                  <table.FlexRender header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody {...ROLES.group}>
          {table.getRowModel().rows.map((row) => (
            <tr key={row.id} {...ROLES.row}>
              {row.getAllCells().map((cell) => (
                <td key={cell.id} data-label={headerText(cell.column.columnDef.header)} {...ROLES.cell}>
                  <table.FlexRender cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function headerText(header: unknown): string {
  return typeof header === 'string' ? header : '';
}
