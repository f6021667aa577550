import type { JobToken } from '../../config/client-config.js';

const TIMEOUT_MS = 10_000;
const TRIES = 3;

/** Returns the token of the CI job that this program runs in. GitHub Actions issues a new one for each call. */
export async function getJobToken(fetch: typeof globalThis.fetch, token: JobToken): Promise<string> {
  if ('text' in token) return token.text;
  const url = new URL(token.requestUrl);
  url.searchParams.set('audience', token.audience);
  const headers = { authorization: `Bearer ${token.requestToken}`, accept: 'application/json' };
  for (let tried = 1; ; tried++) {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
      (error: Error) => error,
    );
    if (!(answer instanceof Error) && answer.ok) return readValue(await answer.json());
    const reason = answer instanceof Error ? answer.message : `HTTP ${answer.status}`;
    if (tried === TRIES) throw new Error(`GitHub Actions issues no token for this job (${reason})`);
  }
}

function readValue(answer: unknown): string {
  const { value } = Object(answer) as { value?: unknown };
  if (typeof value === 'string') return value;
  throw new Error('GitHub Actions answered without a token');
}
