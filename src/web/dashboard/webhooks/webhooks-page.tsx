/** Later. */
export function WebhooksPage() {
  return null;
}
