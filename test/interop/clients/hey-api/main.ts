import { writeFile } from 'node:fs/promises';
import { client } from './api/client.gen.js';
import { createAttestation, downloadBundleCose, listAttestations } from './api/index.js';

const [sha256 = '', id = ''] = process.argv.slice(2);
client.setConfig({ baseUrl: process.env.ATTEST_URL ?? '', auth: process.env.ATTEST_API_KEY ?? '' });
const { data: page } = await listAttestations({ throwOnError: true });
const { data: made } = await createAttestation({
  body: { artifact: { sha256 }, metadata: { schema: 'purl', purl: 'pkg:npm/example@1.0.0' } },
  headers: { 'Idempotency-Key': sha256 },
  throwOnError: true,
});
const { data: receipt } = await downloadBundleCose({ path: { id }, throwOnError: true });
const bytes: Blob | File = receipt;
console.log('listed', page.data[0]?.id);
console.log('created', made.id);
await writeFile('bundle.cose', new Uint8Array(await bytes.arrayBuffer()));
