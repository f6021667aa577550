/** How a table is laid out. */
type Layout = {
  /** Least widths of the columns; widened by the rows, for those that follow them. */
  readonly widths?: number[];
  /** Colours a cell after it is padded. */
  readonly paint?: (cell: string) => string;
};

/** Rows of cells as text in columns, each as wide as its widest cell. */
export function formatTable(
  rows: readonly (readonly string[])[],
  { widths = [], paint = (cell) => cell }: Layout = {},
): string {
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  const formatRow = (row: readonly string[]) =>
    row.map((cell, column) => paint(cell.padEnd(column === row.length - 1 ? 0 : widths[column]!))).join('  ');
  return rows.map((row) => formatRow(row).trimEnd()).join('\n');
}
