/** Rows of cells as text in columns, each as wide as its widest cell. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  const formatRow = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ');
  return rows.map((row) => formatRow(row).trimEnd()).join('\n');
}
