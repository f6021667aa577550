/** Later. */
export function BatchesPage() {
  return null;
}
