import { type ColumnDef, tableFeatures, useTable } from '@tanstack/react-table';

const features = tableFeatures({});

/** A column of a {@link DataTable}; keep columns at module scope or memoised. */
export type Column<T extends object> = ColumnDef<typeof features, T>;

type Props<T extends object> = { label: string; columns: Column<T>[]; data: T[]; idOf: (row: T) => string };

/** A table that scrolls sideways in itself if it must. On narrow screens each row is a card. */
export function DataTable<T extends object>({ label, columns, data, idOf }: Props<T>) {
  const table = useTable({ features, columns, data, getRowId: idOf });
  return (
    <div className="table-box">
      <table aria-label={label}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => (
                <th key={header.id} scope="col">
                  <table.FlexRender header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {table.getRowModel().rows.map((row) => (
            <tr key={row.id}>
              {row.getAllCells().map((cell) => (
                <td key={cell.id} data-label={headerText(cell.column.columnDef.header)}>
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
