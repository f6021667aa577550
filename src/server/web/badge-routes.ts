import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { TrustRoots } from '../../../gen/attestation/v1/service_pb.js';
import { readBundle } from '../../proof/verify/read/read-bundle.js';
import { verifyBundle } from '../../proof/verify/verify.js';
import { environmentName } from '../../protocol/environment.js';
import type { SerializedResponse } from '../core/call.js';
import { unavailable } from '../core/errors.js';
import { etagOf } from '../core/http/etag.js';
import { handleOtherMethods, sendPublic } from '../core/http/public-response.js';
import { limitConcurrency } from '../core/limit-concurrency.js';
import { UNKNOWN_BADGE, verifiedBadge } from './badge.js';

/** Dependencies of badges. */
type BadgeDeps = {
  /** Reads the JSON of a bundle that anyone may read. Returns undefined for any other submission. */
  readPublicBundle: (id: string, peer: string | undefined) => Promise<{ bytes: Uint8Array } | undefined>;
  readTrustRoots: () => Promise<SerializedResponse<TrustRoots>>;
  now: () => Date;
};

const ENDING = '.svg';
/** Also how long a badge outlives its project's permission, in caches. */
const SVG = { contentType: 'image/svg+xml; charset=utf-8', cacheControl: 'public, max-age=60' };
const POLICY = "default-src 'none'; frame-ancestors 'none'";
const BADGES_CACHED = 1_000;
/** Verifying a bundle keeps this thread busy for milliseconds: other calls get their turns in between. */
const LIMITS = { maxConcurrent: 1, maxQueued: 50 };
const RETRY_SECONDS = 1;

/** Adds the badges of public bundles below `path`. Of any other submission it is the same one, with 404. */
export function badgeRoutes(app: FastifyInstance, deps: BadgeDeps, path: string): void {
  const readBadge = createBadgeReader(deps);
  const route = `${path}/badge/:name`;
  app.get<{ Params: { name: string } }>(route, async (request, reply) => {
    const { name } = request.params;
    const bundle = name.endsWith(ENDING)
      ? await deps.readPublicBundle(name.slice(0, -ENDING.length), request.peer)
      : undefined;
    void reply
      .header('content-security-policy', POLICY)
      .header('cross-origin-resource-policy', 'cross-origin');
    if (bundle === undefined) return sendPublic(request, reply.code(404), { ...SVG, bytes: UNKNOWN_BADGE });
    return sendPublic(request, reply, { ...SVG, bytes: await readBadge(bundle.bytes, request.peer) });
  });
  handleOtherMethods(app, route);
}

/**
 * Badges are kept by bundle and trust roots: what the verifier says follows from these. The reader throws
 * `service.unavailable` if too many are made at once.
 */
function createBadgeReader({
  readTrustRoots,
  now,
}: BadgeDeps): (bundle: Uint8Array, peer: string | undefined) => Promise<string> {
  const limited = limitConcurrency(LIMITS, () =>
    unavailable('too many badges are made at once', RETRY_SECONDS),
  );
  const cache = new LRUCache<string, Promise<string>>({ max: BADGES_CACHED });
  return async (bundle, peer) => {
    const roots = await readTrustRoots();
    const { bytes, etag = etagOf(bytes) } = roots.json();
    const key = `${etagOf(bundle)} ${etag}`;
    const badge = cache.get(key) ?? limited(() => makeBadge(bundle, roots.message(), now()), peer);
    cache.set(key, badge);
    badge.catch(() => cache.delete(key));
    return badge;
  };
}

/** A badge is about any file with the attested SHA-256, in the environment of its submission. */
async function makeBadge(bundle: Uint8Array, trustRoots: TrustRoots, now: Date): Promise<string> {
  const { parsed } = readBundle(bundle);
  const own = parsed && {
    environment: environmentName(parsed.submission.environment),
    artifactSha256: parsed.submission.artifactSha256,
  };
  return verifiedBadge(await verifyBundle(bundle, { ...own, trustRoots, now }));
}
