// Serves a log of <size> entries, and its trust roots, for an audit; prints its address. Its bundles of entries repeat.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { encodeEntries, firstEntries } from '../../../src/proof/log/entries.js';
import { HASH_BYTES, leafHash } from '../../../src/proof/log/merkle.js';
import { extendTiles, readFrom, type Tile } from '../../../src/proof/log/tile.js';
import { parseTilePath, TILE_WIDTH } from '../../../src/proof/log/tile-path.js';
import { leafRecord } from '../../../src/proof/statement/leaf.js';
import { listen } from '../../../src/server/core/http/listen.js';
import { restJson } from '../../proof/rest-json.js';
import { makeService } from '../../proof/sample.js';
import { makeTrustRoots } from '../../proof/sample-trust-roots.js';

const DISTINCT_BUNDLES = 64;
const SIGNATURE_BYTES = 71;

const [dir = '', count = ''] = process.argv.slice(2);
const size = Number(count);
const service = await makeService(dir);
const records = Array.from({ length: DISTINCT_BUNDLES * TILE_WIDTH }, () =>
  leafRecord({
    digest: new Uint8Array(randomBytes(HASH_BYTES)),
    signature: new Uint8Array(randomBytes(SIGNATURE_BYTES)),
    publicKey: service.dsse.publicKey,
  }),
);
const bundles = Array.from({ length: DISTINCT_BUNDLES }, (_, i) =>
  encodeEntries(records.slice(i * TILE_WIDTH, (i + 1) * TILE_WIDTH)),
);
const hashes = records.map(leafHash);
const { root, tiles } = extendTiles(
  { size: 0, tiles: [] as Tile[] },
  Array.from({ length: size }, (_, i) => hashes[i % hashes.length]!),
);
const readTile = readFrom(tiles);
const checkpoint = utf8(signCheckpoint({ origin: service.origin, size, rootHash: root }, service.log));

const server = createServer((request, response) => {
  const bytes = fileAt(String(request.url).slice(1));
  response.writeHead(bytes ? 200 : 404, { 'content-length': bytes?.length ?? 0 }).end(bytes);
});
const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
const url = `http://127.0.0.1:${port}`;
const roots = makeTrustRoots(service);
for (const log of roots.transparencyLogs) log.url = `${url}/log`;
const rootsFile = utf8(JSON.stringify(restJson(TrustRootsSchema, roots)));
console.log(url);

function fileAt(path: string): Uint8Array | undefined {
  if (path === 'trust_roots.json') return rootsFile;
  if (path === 'log/checkpoint') return checkpoint;
  const address = parseTilePath(path.replace(/^log\//, ''));
  if (address === undefined) return undefined;
  const { level, index, width } = address;
  if (level === 'entries') return firstEntries(bundles[index % DISTINCT_BUNDLES]!, width);
  return readTile(level, index)?.subarray(0, width * HASH_BYTES);
}
