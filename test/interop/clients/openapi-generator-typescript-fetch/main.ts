import { writeFile } from 'node:fs/promises';
import { AttestationApi, Configuration } from './api/index.js';

const [sha256 = '', bundled = ''] = process.argv.slice(2);
const { ATTEST_URL: basePath = '', ATTEST_API_KEY: accessToken = '' } = process.env;
const attestations = new AttestationApi(new Configuration({ basePath, accessToken }));
const page = await attestations.listAttestations();
const made = await attestations.createAttestation({
  createAttestationRequest: {
    artifact: { sha256 },
    metadata: { schema: 'purl', purl: 'pkg:npm/example@1.0.0' },
  },
  idempotencyKey: sha256,
});
const receipt: Blob = await attestations.downloadBundleCose({ id: bundled });
console.log('listed', page.data[0]?.id);
console.log('created', made.id);
await writeFile('bundle.cose', new Uint8Array(await receipt.arrayBuffer()));
