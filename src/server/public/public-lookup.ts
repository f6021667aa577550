import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import { environmentName } from '../../protocol/environment.js';
import { SUBMISSION_ID } from '../../protocol/ids.js';
import {
  findPublicArtifact,
  hasPublicLookup,
  isPublicSubmission,
} from '../attestations/artifacts/public-lookup.js';
import type { BundleBytes, ReadyBundle } from '../attestations/bundles/ready-bundle.js';
import { unavailable } from '../core/errors.js';
import { handleOtherMethods, sendPublic } from '../core/http/public-response.js';
import { limitConcurrency } from '../core/limit-concurrency.js';
import type { Pool } from '../database/connect.js';
import { invalidRequest } from '../json/problems.js';
import { notFound, PUBLIC_PATH } from './routes.js';

/** Dependencies of public look-ups. */
type PublicLookupDeps = {
  pool: Pool;
  /** Whether projects without a setting of their own are looked up in public: the setting PUBLIC_LOOKUP. */
  isDefault: boolean;
  verifyUrl: () => string;
  readPublicBundle: PublicBundleReader;
  /** Monotonic milliseconds. */
  monotonicMs: () => number;
};

/** A bundle that anyone may read, with the time stamps that are stored; `complete` waits for those that it lacks. */
type PublicBundle = BundleBytes & { complete: () => Promise<BundleBytes> };

/** Reads a bundle that anyone may read, for a peer. Returns undefined for any other submission, unknown or not. */
type PublicBundleReader = (id: string, peer: string | undefined) => Promise<PublicBundle | undefined>;

/** Dependencies of public bundles. */
export type PublicBundleDeps = Pick<PublicLookupDeps, 'pool' | 'isDefault'> & {
  /** Finds the bundle of a submission of any project. Returns undefined if it has none yet. */
  findBundle: (id: string) => Promise<ReadyBundle | undefined>;
};

const NEWEST = 20;
const SHA256 = /^[0-9a-f]{64}$/i;
/** How long responses stay in caches, and the settings of projects in this process. */
const TTL_SECONDS = 5;
const CACHE = `public, max-age=${TTL_SECONDS}`;
const MAX_CACHED = 1_000;
const JSON_TYPE = 'application/json';
/** A look-up costs Postgres a millisecond, ten while leaves are still to be indexed. */
const LIMITS = { maxConcurrent: 2, maxQueued: 50 };
const RETRY_SECONDS = 1;

/**
 * A reader of public bundles. It throws `service.unavailable` if too many are read at once. The time of its answer does not
 * tell a hidden submission from an unknown one: only of a public submission anything more is read.
 */
export function createPublicBundleReader({
  pool,
  isDefault,
  findBundle,
}: PublicBundleDeps): PublicBundleReader {
  const limited = limitReads();
  const read = async (id: string) => {
    if (!(await isPublicSubmission(pool, id, isDefault))) return undefined;
    const found = await findBundle(id);
    if (found === undefined) return undefined;
    const { bytes, stampRetrySeconds } = await found.read(0);
    const bundle = { bytes, stampRetrySeconds };
    // Later, so that who waits for a time stamp keeps nobody from reading.
    return { ...bundle, complete: async () => (stampRetrySeconds === undefined ? bundle : found.read()) };
  };
  return async (id, peer) => (SUBMISSION_ID.test(id) ? limited(() => read(id), peer) : undefined);
}

function limitReads() {
  return limitConcurrency(LIMITS, () =>
    unavailable('too many look-ups are under way at once', RETRY_SECONDS),
  );
}

/** Adds the look-up by artifact, and its bundles. Both answer 404 for submissions that are not public. */
export function publicLookupRoutes(app: FastifyInstance, deps: PublicLookupDeps): void {
  const limited = limitReads();
  const ttl = { max: MAX_CACHED, ttl: TTL_SECONDS * 1_000, perf: { now: deps.monotonicMs } };
  const pages = new LRUCache<string, Promise<string | undefined>>(ttl);
  const lookUp = (sha256: string, peer: string | undefined): Promise<string | undefined> => {
    const known = pages.get(sha256) ?? limited(() => readPage(deps, sha256), peer);
    pages.set(sha256, known, { noUpdateTTL: true });
    known.catch(() => pages.delete(sha256));
    return known;
  };
  app.get<{ Querystring: Record<string, unknown> }>(`${PUBLIC_PATH}/lookup`, async (request, reply) => {
    const page = await lookUp(readDigest(request.query), request.peer);
    if (page === undefined) return notFound(reply);
    return sendPublic(request, reply, { bytes: page, contentType: JSON_TYPE, cacheControl: CACHE });
  });
  app.get<{ Params: { id: string } }>(`${PUBLIC_PATH}/bundle/:id`, async (request, reply) => {
    const found = await deps.readPublicBundle(request.params.id, request.peer);
    if (found === undefined) return notFound(reply);
    const { bytes, stampRetrySeconds } = await found.complete();
    if (stampRetrySeconds !== undefined) void reply.header('retry-after', stampRetrySeconds);
    return sendPublic(request, reply, { bytes, contentType: JSON_TYPE, cacheControl: CACHE });
  });
  for (const path of ['/lookup', '/bundle/:id']) handleOtherMethods(app, PUBLIC_PATH + path);
}

/** Reads the only parameter of a look-up. Throws `request.invalid`. */
function readDigest({ artifact_sha256: sha256, ...others }: Record<string, unknown>): string {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw invalidRequest([{ path: `/${unknown}`, message: 'is not a known member' }]);
  if (typeof sha256 === 'string' && SHA256.test(sha256)) return sha256.toLowerCase();
  const message = sha256 === undefined ? 'is missing' : 'must be 64 hex digits';
  throw invalidRequest([{ path: '/artifact_sha256', message }]);
}

/** The response as JSON; undefined if no project is looked up in public. */
async function readPage(
  { pool, isDefault, verifyUrl }: PublicLookupDeps,
  sha256: string,
): Promise<string | undefined> {
  if (!(await hasPublicLookup(pool, isDefault))) return undefined;
  const artifact = Buffer.from(sha256, 'hex');
  const { submissions, isComplete } = await findPublicArtifact(pool, artifact, { isDefault, limit: NEWEST });
  return JSON.stringify({
    artifact_sha256: sha256,
    is_complete: isComplete,
    submissions: submissions.map(({ id, projectId, environment, submittedAt }) => ({
      id,
      project: projectId,
      environment: environmentName(environment),
      submitted_at: submittedAt.toISOString(),
      bundle_url: `${verifyUrl()}/bundle/${id}`,
    })),
  });
}
