import { createHash, randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { toJsonString } from '@bufbuild/protobuf';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { AttestationService, SubmissionStatus } from './gen/attestation/v1/attestations_pb.js';
import { ProofBundleSchema } from './gen/attestation/v1/bundle_pb.js';

const [path = ''] = process.argv.slice(2);
const { ATTEST_URL: baseUrl = 'http://localhost:8080', ATTEST_API_KEY } = process.env;
const authorize: Interceptor = (next) => (call) => {
  call.header.set('authorization', `Bearer ${ATTEST_API_KEY}`);
  return next(call);
};
const interceptors = [authorize];
const transport = createConnectTransport({ baseUrl, httpVersion: '1.1', interceptors, defaultTimeoutMs: 30_000 });
const client = createClient(AttestationService, transport);

const sha256 = createHash('sha256').update(await readFile(path)).digest('hex');
const metadata = { schema: 'purl', purl: 'pkg:npm/example@1.0.0' };
const headers = { 'idempotency-key': randomUUID() };
let { id, status } = await client.createAttestation({ artifact: { sha256 }, metadata }, { headers });
while (status === SubmissionStatus.QUEUED) {
  await setTimeout(250);
  ({ status } = await client.getAttestation({ id }));
}
const bundle = await client.getBundle({ id });
await writeFile(`${path}.bundle`, toJsonString(ProofBundleSchema, bundle));
console.log(id);
