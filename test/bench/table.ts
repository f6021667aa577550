/** Tables of figures as text. */

/** Columns as wide as they need be, all but the first to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length))) ?? [];
  const cell = (text: string, i: number) =>
    i === 0 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0);
  return rows.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}

/** Rounded to a whole number; `-` of nothing. */
export function whole(value: number | undefined): string {
  return value === undefined ? '-' : String(Math.round(value));
}

/** With one decimal; `-` of nothing. */
export function fixed(value: number | undefined): string {
  return value === undefined ? '-' : value.toFixed(1);
}
