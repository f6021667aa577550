/** Later. */
export function UsagePage() {
  return null;
}
