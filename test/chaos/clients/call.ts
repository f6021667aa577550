/** One request to the service, as a client sends it. */

/** What came of a request; `broken` when there was no answer, and nobody knows whether it took effect. */
export type Answer = { status: number | 'broken'; body: Body; text: string };

/** What of answers is looked at. */
export type Body = {
  id?: string;
  log_index?: number;
  leaf_sha256?: string;
  status?: string;
  secret?: string;
  metadata_state?: string;
  artifact?: { sha256: string };
  metadata?: Record<string, unknown>;
  error?: { code: string; message: string };
  data?: Body[];
  next_cursor?: string;
};

export type Request = {
  apiKey: string;
  method?: string;
  body?: unknown;
  idempotencyKey?: string | undefined;
  timeoutMs?: number;
};

const TIMEOUT_MS = 5_000;

/** Sends it once. Never throws. */
export async function call(url: string, request: Request): Promise<Answer> {
  const { apiKey, method = 'GET', body, idempotencyKey, timeoutMs = TIMEOUT_MS } = request;
  try {
    const answer = await fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith('{') ? (JSON.parse(text) as Body) : {}, text };
  } catch {
    return { status: 'broken', body: {}, text: '' };
  }
}

/** Whether the same request may come to something later. */
export function isPassing({ status, body }: Answer): boolean {
  const isBusy = status === 409 && body.error?.code === 'idempotency.in_progress';
  return status === 'broken' || status === 503 || status === 504 || isBusy;
}
