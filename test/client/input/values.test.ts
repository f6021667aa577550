/** Values of members: which are accepted, by the check and by the types, and which are an error before any call. */
import type { DescField } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import {
  AttestationService,
  type Client,
  CreateAttestationRequestSchema,
  type ListAttestationsRequest,
  SubmissionStatus,
  SubmissionStatusSchema,
  ValidationMode,
} from '../../../src/client/client.js';
import { enumNames } from '../../../src/protocol/enum-names.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { all, clientOf, METADATA, REQUEST } from '../clients.js';
import { serveNothing } from './silent-server.js';

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
