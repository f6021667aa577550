/** Later. */
export function WebhookPage({ id }: { id: string }) {
  return id;
}
