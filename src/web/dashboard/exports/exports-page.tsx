/** Later. */
export function ExportsPage() {
  return null;
}
