/** Later. */
export function AuditPage() {
  return null;
}
