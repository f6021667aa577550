/** Lists of submissions with as much metadata as there may be: pages are bounded in bytes, and nothing is lost between. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { canonicalJson } from '../../../../src/proof/bytes/jcs.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { creation } from '../../rpc/samples.js';

const PAGE_BYTES = 512 * 1024;
const LARGEST = 64 * 1024;
const { createAttestation, listAttestations, updateAttestation } = AttestationService.method;

const app = await startApp(t);
const surfaces = app.surfaces();
const [rest] = surfaces;

type Item = { id: string; metadata: JsonObject; attestedMetadata?: JsonObject };

/** Metadata of so many bytes in canonical JSON; what is not ASCII counts as often as it takes. */
function sized(bytes: number, filler = 'x'): JsonObject {
  const bare = { note: '', purl: 'pkg:npm/left-pad@1.3.0', schema: 'purl' };
  const room = bytes - Buffer.byteLength(canonicalJson(bare) ?? '');
  const each = Buffer.byteLength(JSON.stringify(filler)) - 2;
  const note = filler.repeat(Math.floor(room / each)) + 'y'.repeat(room % each);
  return { ...bare, note };
}

async function submit(apiKey: string, metadata: JsonObject, more = {}): Promise<Item> {
  const { code, response } = await rest!.call(
    createAttestation,
    { ...creation('ab'.repeat(32), metadata), ...more },
    apiKey,
  );
  if (code !== 'ok') throw new Error(`not created: ${code}`);
  return response as unknown as Item;
}

function sizeOf({ metadata, attestedMetadata }: Item): number {
  return [metadata, attestedMetadata]
    .map((one) => (one === undefined ? 0 : Buffer.byteLength(canonicalJson(one) ?? '')))
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** An item's id and metadata, short enough to be compared quickly. */
function told({ id, metadata }: Item): string {
  return `${id} ${createHash('sha256')
    .update(canonicalJson(metadata) ?? '')
    .digest('hex')}`;
}

async function walk(apiKey: string, limit: number, surface = rest!): Promise<Item[][]> {
  const pages: Item[][] = [];
  let cursor = '';
  do {
    const { code, response } = await surface.call(listAttestations, { limit, cursor }, apiKey);
    if (code !== 'ok') throw new Error(code);
    const { data, nextCursor = '' } = response as unknown as { data: Item[]; nextCursor?: string };
    pages.push(data);
    cursor = nextCursor;
  } while (cursor !== '');
  return pages;
}

t.test('no item is lost or doubled where a page is cut, and none is larger than said', async (t) => {
  const { key } = await newKey(app);
  const made: Item[] = [];
  const sizes = [LARGEST, 200, LARGEST - 1, 8_191, LARGEST, 100, 32_768, LARGEST, LARGEST, 150];
  for (let i = 0; i < 40; i++) {
    made.unshift(await submit(key, sized(sizes[i % sizes.length]!, ['x', 'é', '"', '\u2028', '\n'][i % 5])));
  }
  for (const surface of surfaces) {
    for (const limit of [200, 7]) {
      const pages = await walk(key, limit, surface);
      const what = `${surface.name}, ${limit}`;
      t.same(pages.flat().map(told), made.map(told), what);
      for (const [i, page] of pages.entries()) {
        const bytes = page.reduce((sum, item) => sum + sizeOf(item), 0);
        const next = pages[i + 1]?.[0];
        t.ok(page.length >= 1 && page.length <= limit && bytes <= PAGE_BYTES, what);
        t.ok(
          page.length === limit || next === undefined || bytes + sizeOf(next) > PAGE_BYTES,
          `${what}: full`,
        );
      }
    }
  }
});

t.test('exactly as much as there is room for is one page, with a byte more it is two', async (t) => {
  for (const [last, lengths] of [
    [LARGEST, [8]],
    [LARGEST + 1, [8, 1]],
  ] as const) {
    const { key } = await newKey(app);
    for (let i = 0; i < 7; i++) await submit(key, sized(LARGEST));
    await submit(key, sized(Math.min(last, LARGEST)));
    if (last > LARGEST) await submit(key, sized(100));
    const pages = await walk(key, 200);
    t.same(
      pages.map(({ length }) => length),
      lengths,
    );
  }
});

t.test('attested metadata counts beside its correction', async (t) => {
  const { key } = await newKey(app);
  const wrong = { ...sized(LARGEST - 10), purl: 'none' };
  for (let i = 0; i < 6; i++) {
    const { id } = await submit(key, wrong, { validation: 2 });
    const { code } = await rest!.call(updateAttestation, { id, metadata: sized(LARGEST) }, key);
    t.equal(code, 'ok');
  }
  const pages = await walk(key, 200);
  t.same(
    pages.map(({ length }) => length),
    [4, 2],
  );
  t.same(pages[0]?.[0]?.metadata, sized(LARGEST));
  t.same(pages[0]?.[0]?.attestedMetadata, wrong);
});

t.test('metadata is answered in the very bytes that were stored', async (t) => {
  const { key } = await newKey(app);
  const metadata = {
    schema: 'purl',
    purl: 'pkg:npm/left-pad@1.3.0',
    b: [1e21, -0.5, null, true, { é: '\u2028"\\/\u0007', __proto__x: {} }],
    '': '',
  };
  await submit(key, metadata);
  const { body } = await app.rest('/v1/attestations', { apiKey: key });
  t.ok(body.includes(`"metadata":${canonicalJson(metadata)}`), body.toString());
});
