import t from 'tap';
import {
  type ClientOptions,
  createClient,
  hashArtifact,
  verifyBundle,
  verifyReceipt,
  verifyWebhook,
} from '../../../src/client/client.js';
import { all, KEY, METADATA, REQUEST } from '../clients.js';
import { serveNothing } from './silent-server.js';

t.test('each option is known and of its type, or a TypeError', async (t) => {
  const { client, calls } = await serveNothing(t);
  const { create, submitFile, submitMany, listByFile, waitUntilWitnessed } = client.attestations;
  const bytes = new Uint8Array([1]);
  const metadata = METADATA;
  const trusting = { trustRoots: {}, now: new Date() };
  const functions: Record<string, (options: never) => unknown> = {
    create: (options) => create(REQUEST, options),
    submitFile: (options) => submitFile(bytes, { metadata, ...(options as object) }),
    submitMany: (options) => all(submitMany([REQUEST], options)),
    listByFile: (options) => all(listByFile(bytes, options)),
    waitUntilWitnessed: (options) => waitUntilWitnessed('sub_1', options),
    createClient: async (options) =>
      createClient({ baseUrl: 'http://a', apiKey: KEY, ...(options as object) }),
    hashArtifact: (options) => hashArtifact(bytes, options),
    verifyBundle: (options) => verifyBundle({}, { ...trusting, ...(options as object) }),
    verifyReceipt: (options) =>
      verifyReceipt(bytes, { leafHash: bytes, ...trusting, ...(options as object) }),
    verifyWebhook: async (options) => verifyWebhook('', {}, `whsec_${'A'.repeat(32)}`, options),
  };
  const wrong: Record<string, Record<string, unknown>[]> = {
    create: [
      { timeoutMs: 0 },
      { timeoutMs: '5' },
      { timeoutMs: Number.POSITIVE_INFINITY },
      { signal: {} },
      { idempotencyKey: 'a b' },
      { idempotencyKey: '' },
      { idempotencyKey: null },
    ],
    submitFile: [
      { onBytes: 1 },
      { timeoutMs: -1 },
      { artifact: { sha256: 'a' } },
      { validation: 'strickt' },
      { metadata: undefined, metdata: metadata },
    ],
    submitMany: [{ onResults: true }, { idempotencyKey: 'a' }, { timeoutMs: Number.NaN }],
    listByFile: [
      { artifactSha256: 'a' },
      { cursor: 'a' },
      { limit: '5' },
      { status: 'x' },
      { submitted_after: new Date() },
    ],
    waitUntilWitnessed: [{ timeoutMs: '1' }, { onProgress: {} }, { intervalMs: 5 }],
    createClient: [
      { baseUrl: undefined },
      { baseURL: 'http://a' },
      { retries: 1 },
      { maxRetries: 1.5 },
      { maxRetries: -1 },
      { maxRetries: '2' },
      { fetch: {} },
      { timeoutMs: null },
      { userAgent: 7 },
      { apiKey: 7 },
    ],
    hashArtifact: [{ onByte: () => {} }, { signal: 1 }],
    verifyBundle: [
      { projekt: 'prj_1' },
      { minWitnesses: '2' },
      { requireWitnesses: 'tsa' },
      { requireWitness: ['tsa'] },
      { project: 7 },
      { environment: 'prod' },
      { environment: 2 },
      { now: 0 },
      { now: undefined },
      { now: new Date('x') },
      { artifact: 'text' },
      { artifactSHA256: 'a' },
      { policy: ['tsa'] },
      { receipt: 'a' },
      { metadataSalt: 7 },
    ],
    verifyReceipt: [{ environment: 'prod' }, { leaf: bytes }, { leafHash: 'a' }, { now: undefined }],
    verifyWebhook: [{ toleranceSeconds: '5' }, { tolerance: 5 }, { now: Date.now() }, { now: new Date('x') }],
  };
  for (const [name, call] of Object.entries(functions)) {
    for (const options of [{ nope: 1 }, ...(wrong[name] ?? [])]) {
      await t.rejects(
        async () => call(options as never),
        { name: 'TypeError', message: /^(there is no option |the option |baseUrl |apiKey |\/)/ },
        `${name} ${JSON.stringify(options)}`,
      );
    }
  }
  t.throws(() => createClient(undefined as unknown as ClientOptions), TypeError);
  await t.rejects(verifyReceipt('text' as never, { leafHash: bytes, ...trusting }), TypeError);
  t.equal(calls(), 0);
});
