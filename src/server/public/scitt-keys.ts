import type { FastifyInstance, FastifyReply } from 'fastify';
import { fromPem } from '../../proof/asn1/pem.js';
import { sha256 } from '../../proof/bytes/primitives.js';
import { type CborValue, encodeCbor } from '../../proof/cose/cbor.js';
import { CONCISE_PROBLEM_TYPE } from '../core/http/concise-problem.js';
import { handleOtherMethods, sendPublic } from '../core/http/public-response.js';
import type { TrustRootsReader } from './trust-roots.js';

/** The path of the keys of receipts (draft-ietf-scitt-scrapi-10, section 2.1). */
const PATH = '/.well-known/scitt-keys';
const KEYS = { contentType: 'application/cbor', cacheControl: 'public, max-age=60' };
const [TITLE, DETAIL] = [-1, -2];

// Labels and values of a COSE_Key (RFC 9052, section 7; RFC 9053, section 7.1).
const [KTY, KID, ALG, CRV, X, Y] = [1, 2, 3, -1, -2, -3];
const [EC2, ES256, P256] = [2, -7, 1];
const COORDINATE_BYTES = 32;

type CoseKey = ReadonlyMap<number, CborValue>;

/** Registers the routes of the keys of receipts: those of every log, ended ones included, as COSE keys. */
export function scittKeyRoutes(app: FastifyInstance, trustRoots: Pick<TrustRootsReader, 'read'>): void {
  app.get(PATH, async (request, reply) => {
    const keys = [...(await readKeys(trustRoots)).values()];
    return sendPublic(request, reply, { ...KEYS, bytes: encodeCbor(keys) });
  });
  app.get<{ Params: { kid: string } }>(`${PATH}/:kid`, async (request, reply) => {
    const key = (await readKeys(trustRoots)).get(request.params.kid);
    return key === undefined
      ? noSuchKey(reply)
      : sendPublic(request, reply, { ...KEYS, bytes: encodeCbor(key) });
  });
  for (const path of [PATH, `${PATH}/:kid`]) handleOtherMethods(app, path);
}

/** The keys by their ids in base64url. */
async function readKeys({ read }: Pick<TrustRootsReader, 'read'>): Promise<Map<string, CoseKey>> {
  const { transparencyLogs } = (await read()).message();
  const pems = transparencyLogs.map(({ receiptPublicKeyPem }) => receiptPublicKeyPem);
  return new Map(
    pems
      .filter((pem) => pem !== '')
      .map((pem) => {
        const spki = fromPem('PUBLIC KEY', pem);
        const kid = sha256(spki);
        return [Buffer.from(kid).toString('base64url'), coseKey(spki, kid)];
      }),
  );
}

/** A P-256 key: its SPKI in DER ends with x and y. */
function coseKey(spki: Uint8Array, kid: Uint8Array): CoseKey {
  const point = spki.subarray(-2 * COORDINATE_BYTES);
  return new Map<number, CborValue>([
    [KTY, EC2],
    [KID, kid],
    [ALG, ES256],
    [CRV, P256],
    [X, point.subarray(0, COORDINATE_BYTES)],
    [Y, point.subarray(COORDINATE_BYTES)],
  ]);
}

function noSuchKey(reply: FastifyReply): FastifyReply {
  const problem = new Map([
    [TITLE, 'No such key'],
    [DETAIL, 'no log of this service has a key of receipts with this kid'],
  ]);
  return reply
    .code(404)
    .header('access-control-allow-origin', '*')
    .header('cache-control', 'public, max-age=5')
    .type(CONCISE_PROBLEM_TYPE)
    .send(encodeCbor(problem));
}
