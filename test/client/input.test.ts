/** Arguments of the library's functions: what is unknown or of another type is an error before any call. */
import { createServer } from 'node:http';
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t, { type Test } from 'tap';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import {
  AttestationService,
  type Client,
  type ClientOptions,
  CreateAttestationRequestSchema,
  createClient,
  ExportService,
  hashArtifact,
  type ListAttestationsRequest,
  SubmissionStatus,
  SubmissionStatusSchema,
  ValidationMode,
  verifyBundle,
  verifyReceipt,
  verifyWebhook,
  WebhookService,
} from '../../src/client/client.js';
import { enumNames } from '../../src/protocol/enum-names.js';
import { listen, serveRpc } from '../support/servers/rpc-server.js';
import { all, clientOf, KEY, METADATA, REQUEST } from './clients.js';

const SERVICES = {
  attestations: AttestationService,
  batches: BatchService,
  webhooks: WebhookService,
  exports: ExportService,
  service: InfoService,
} as const;

type Method = (request?: unknown, options?: unknown) => Promise<unknown>;

/** A client of a server that answers nothing, and how often it was called. */
async function serveNothing(t: Test) {
  let calls = 0;
  const server = createServer((_, response) => {
    calls++;
    response.writeHead(500).end();
  });
  const { client } = clientOf(await listen(t, server), { maxRetries: 0 });
  return { client, calls: () => calls };
}

/** The methods of a client, each with the type of its request. */
function* methodsOf(client: Client): Generator<{ name: string; call: Method; input: DescMessage }> {
  for (const [name, service] of Object.entries(SERVICES)) {
    const resource = client[name as keyof typeof SERVICES] as unknown as Record<string, Method>;
    const names = new Set(Object.keys(resource));
    for (const { localName, input, methodKind } of service.methods) {
      const short = [...names].find(
        (one) => localName.replace(/(Attestation|Batch|Webhook|Export|Info)(es|s)?(?![a-z])/, '') === one,
      );
      if (methodKind === 'unary' && short !== undefined) {
        yield { name: `${name}.${short}`, call: resource[short] as Method, input };
      }
    }
  }
}

/** A function is of no field's type, and neither is a symbol. */
const OF_NO_TYPE = [() => 1, Symbol('s'), null, new Map()];

t.test(
  'each member of each request is known and of its type, or a TypeError with its JSON pointer',
  async (t) => {
    const { client, calls } = await serveNothing(t);
    let methods = 0;
    for (const { name, call, input } of methodsOf(client)) {
      methods++;
      const rejects = (request: unknown, message: RegExp) =>
        t.rejects(call(request), { name: 'TypeError', message }, `${name} ${message}`);
      await rejects({ nope: 1 }, /^\/nope is not known: \w+ has /);
      await rejects({ [Symbol('nope')]: 1 }, /is not known/);
      for (const given of [[], new Date(), new Map(), 7, true, () => 1]) {
        await rejects(given, /^the argument must be an object with members of /);
      }
      for (const field of input.fields) {
        for (const value of OF_NO_TYPE) {
          const at = new RegExp(`^/${field.localName}(/0)? (must|is) `);
          await rejects({ [field.localName]: value }, at);
          if (field.fieldKind === 'list') await rejects({ [field.localName]: [value] }, at);
        }
        if (field.name === field.localName) continue;
        const spelled = new RegExp(`^/${field.name} is not known: ${input.name} has ${field.localName}$`);
        await rejects({ [field.name]: 'x' }, spelled);
      }
      await t.rejects(call({}, { timeout: 5 }), {
        name: 'TypeError',
        message: /^there is no option timeout: there are /,
      });
      await t.rejects(call({}, 5), { name: 'TypeError', message: /options must be an object/ });
    }
    t.ok(methods > 20, `${methods} methods`);
    t.equal(calls(), 0);
  },
);

t.test('values that only look right are rejected', async (t) => {
  const { client, calls } = await serveNothing(t);
  const { list } = client.attestations;
  const create = (validation: unknown) => client.attestations.create({ ...REQUEST, validation } as never);
  const at = new Date('invalid');
  for (const [call, message] of [
    [list({ limit: 1.5 }), /^\/limit must be an integer from -2147483648 to 2147483647, not 1\.5$/],
    [list({ limit: '5' } as never), /^\/limit must be an integer .* not a string$/],
    [list({ limit: 2 ** 31 }), /^\/limit must be an integer/],
    [list({ limit: Number.NaN }), /^\/limit must be an integer/],
    [list({ schema: 'a\ud800' }), /^\/schema has a lone surrogate/],
    [list({ submittedAfter: at }), /^\/submittedAfter is a Date that is no valid time$/],
    [
      list({ submittedAfter: '2030-01-01T00:00:00Z' } as never),
      /^\/submittedAfter must be a Date or a Timestamp/,
    ],
    [list({ submittedAfter: 0 } as never), /^\/submittedAfter must be a Date or a Timestamp/],
    [list({ submittedAfter: { seconds: 1.5 } } as never), /^\/submittedAfter\/seconds must be an integer/],
    [
      list({ submittedAfter: { second: 1n } } as never),
      /^\/submittedAfter\/second is not known: Timestamp has seconds/,
    ],
    [
      list({ status: 'witness' as never }),
      /^\/status must be a SubmissionStatus \('queued', 'witnessed', .*\), not "witness"$/,
    ],
    [list({ status: 99 as never }), /^\/status must be a SubmissionStatus .* not 99$/],
    [list({ status: 'SUBMISSION_STATUS_WITNESSED' as never }), /^\/status must be a SubmissionStatus/],
    [create('STRICT'), /^\/validation must be a ValidationMode \('strict', 'lenient'\), not "STRICT"$/],
    [create('toString'), /^\/validation must be/],
    [
      client.attestations.create({ ...REQUEST, artifact: { sha256: 7 } } as never),
      /^\/artifact\/sha256 must be a string/,
    ],
    [
      client.attestations.create({ ...REQUEST, artifact: { sha265: 'a' } } as never),
      /^\/artifact\/sha265 is not known/,
    ],
    [
      client.webhooks.create({ url: 'https://a', events: 'attestation.witnessed' } as never),
      /^\/events must be an array/,
    ],
    [
      client.webhooks.create({ url: 'https://a', events: ['no'] } as never),
      /^\/events\/0 must be a EventType/,
    ],
    [
      client.attestations.get({ $typeName: 'attestation.v1.Batch', id: 'a' } as never),
      /must be a GetAttestationRequest/,
    ],
    [client.service.getMe('id' as never), /^\/id is not known/],
  ] as [Promise<unknown>, RegExp][]) {
    await t.rejects(call, { name: 'TypeError', message }, String(message));
  }
  t.equal(calls(), 0);
});

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

t.test('a time may be a Date, and an enum value a text as the API spells it', async (t) => {
  const got: ListAttestationsRequest[] = [];
  const modes: ValidationMode[] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: ({ validation }) => {
        modes.push(validation);
        return {};
      },
      listAttestations: (request) => {
        got.push(request);
        return {};
      },
    });
  });
  const { create, list, listByFile, submitFile } = clientOf(baseUrl).client.attestations;
  const at = new Date('2030-01-01T00:00:00.123Z');
  const times = [at, timestampFromDate(at), { seconds: timestampFromDate(at).seconds, nanos: 123_000_000 }];
  for (const submittedAfter of times) {
    await list({ submittedAfter, limit: undefined });
    t.match(got.pop(), { submittedAfter: timestampFromDate(at) });
  }
  await all(listByFile(new Uint8Array([1]), { submittedBefore: at, status: 'partial' }));
  t.match(got.pop(), { submittedBefore: timestampFromDate(at), status: SubmissionStatus.PARTIAL });
  for (const name of enumNames(SubmissionStatusSchema)) {
    await list({ status: name as 'queued' });
    const { status } = got.pop() as ListAttestationsRequest;
    t.equal(SubmissionStatus[status], name.toUpperCase());
  }
  for (const validation of ['lenient', ValidationMode.LENIENT] as const) {
    await create({ ...REQUEST, validation });
    await submitFile(new Uint8Array([1]), { metadata: METADATA, validation });
  }
  t.same(modes, Array(4).fill(ValidationMode.LENIENT));
});

t.test('the types are those of the checks', async (t) => {
  type Filter = Exclude<Parameters<Client['attestations']['list']>[0], string | undefined>;
  const right: Filter[] = [
    { status: 'witnessed' },
    { status: SubmissionStatus.FAILED, submittedAfter: new Date() },
  ];
  // @ts-expect-error: no status is spelled so
  right.push({ status: 'witness' });
  // @ts-expect-error: a number is no text
  right.push({ limit: '5' });
  // @ts-expect-error: there is no such filter
  right.push({ artifact_sha256: 'a' });
  // @ts-expect-error: a text is no time
  right.push({ submittedAfter: '2030-01-01' });
  t.equal(right.length, 6);
  const fields: DescField[] = CreateAttestationRequestSchema.fields;
  t.ok(fields.length > 0);
});
