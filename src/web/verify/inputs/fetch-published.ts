import { FormatError } from '../../../proof/bytes/format-error.js';
import { SUBMISSION_ID } from '../../../protocol/ids.js';
import { urlBelow } from '../place.js';
import type { GivenBundle } from './input-files.js';

/** Fetches the trust roots of the service that serves the page. Throws FormatError if it cannot. */
export async function fetchTrustRoots(): Promise<{ text: string; url: string }> {
  const url = urlBelow('trust_roots.json').href;
  const response = await get(url, 'the trust roots');
  if (!response.ok)
    throw new FormatError(`The server answered ${response.status} instead of its trust roots.`);
  return { text: await response.text(), url };
}

/** Fetches the bundle of a submission, if it is public. Throws FormatError. */
export async function fetchPublicBundle(text: string): Promise<GivenBundle> {
  const id = text.trim();
  if (!SUBMISSION_ID.test(id)) {
    throw new FormatError('A submission ID is sub_ followed by 26 digits and capital letters.');
  }
  const response = await get(urlBelow(`bundle/${id}`).href, 'the bundle');
  if (response.status === 404) {
    throw new FormatError(
      'There is no public bundle of this submission. It is unknown, not witnessed yet, or its project keeps bundles to itself: then ask whoever gave you the ID for the bundle.',
    );
  }
  if (!response.ok) throw new FormatError(`The server answered ${response.status}. Try again in a moment.`);
  return { name: `bundle of ${id}`, bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** A submission that the server found by an artifact. */
export type PublicMatch = { id: string; project: string; environment: string; submittedAt: string };

/** Finds public submissions of a file, newest first, telling the server its SHA-256. Throws FormatError. */
export async function findPublicSubmissions(sha256: string): Promise<PublicMatch[]> {
  const response = await get(urlBelow(`lookup?artifact_sha256=${sha256}`).href, 'the look-up');
  if (response.status === 404) {
    throw new FormatError(
      'This service does not let the public look up files: ask whoever attested it for the bundle.',
    );
  }
  if (!response.ok) throw new FormatError(`The server answered ${response.status}. Try again in a moment.`);
  const { submissions = [] } = (await response.json()) as { submissions?: Record<string, unknown>[] };
  return submissions.map(({ id, project, environment, submitted_at: submittedAt }) => ({
    id: String(id),
    project: String(project),
    environment: String(environment),
    submittedAt: String(submittedAt),
  }));
}

async function get(url: string, what: string): Promise<Response> {
  try {
    return await fetch(url, { credentials: 'omit', redirect: 'error' });
  } catch {
    throw new FormatError(`The server that should have ${what} cannot be reached.`);
  }
}
