const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'] as const;

/** A number of bytes for people, in powers of 1,000, such as `52.4 MB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}
