/** A number and its noun: `1 leaf`, `1,200 leaves`. */
export function count(number: number | bigint, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${BigInt(number) === 1n ? one : many}`;
}
