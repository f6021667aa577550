/** Requests that an API process answered, by RPC. */
export type RequestCounts = Record<string, number>;

const LINE = /^attest_requests_total\{[^}]*rpc="([^"]+)"[^}]*\} (\d+)$/gm;

/** Reads the counts from the metrics of a process, by its ops port. */
export async function readRequestCounts(opsPort: number): Promise<RequestCounts> {
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  const counts: RequestCounts = {};
  for (const [, rpc = '', count] of text.matchAll(LINE)) counts[rpc] = (counts[rpc] ?? 0) + Number(count);
  return counts;
}

/** Returns what was added to counts, without what has not changed. */
export function addedCounts(before: RequestCounts, after: RequestCounts): RequestCounts {
  const added = Object.entries(after).map(([rpc, count]) => [rpc, count - (before[rpc] ?? 0)] as const);
  return Object.fromEntries(added.filter(([, count]) => count > 0));
}
