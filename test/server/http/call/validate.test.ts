import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import t from 'tap';
import { GetUsageRequestSchema } from '../../../../gen/attestation/admin/v1/usage_pb.js';
import {
  BatchCreateAttestationsRequestSchema,
  CreateAttestationRequestSchema,
  ListAttestationsRequestSchema,
  type ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  CreateWebhookRequestSchema,
  EventType,
  UpdateWebhookRequestSchema,
  WebhookStatus,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { ApiError } from '../../../../src/server/core/errors.js';
import { createValidate } from '../../../../src/server/http/call/validate.js';
import {
  BookSchema,
  CreateBookRequestSchema,
  ListBooksRequestSchema,
} from '../../../gen/library/v1/library_pb.js';

const validate = createValidate();

/** The problems of a message, as `path: message`. */
function problemsOf<D extends DescMessage>(desc: D, init: MessageInitShape<D>): string[] {
  try {
    validate(desc, create(desc, init));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== ErrorCode.REQUEST_INVALID) throw error;
    const { errors } = error.details as { errors: { path: string; message: string }[] };
    return errors.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

t.test('a message that keeps its rules passes, and one without rules always', async (t) => {
  const sha256 = 'aB'.repeat(32);
  t.same(problemsOf(CreateAttestationRequestSchema, { artifact: { sha256 }, metadata: {} }), []);
  t.same(problemsOf(ListAttestationsRequestSchema, { limit: 200 }), []);
  t.same(problemsOf(ListAttestationsRequestSchema, {}), []);
  t.same(problemsOf(BookSchema, { copies: -1n }), []);
});

t.test("every violated rule is reported at its field's pointer", async (t) => {
  t.same(problemsOf(CreateAttestationRequestSchema, {}), [
    '/artifact: is required',
    '/metadata: is required',
  ]);
  t.match(
    problemsOf(CreateAttestationRequestSchema, {
      artifact: { sha256: 'x' },
      metadata: {},
      validation: 9 as ValidationMode,
    }),
    ['/artifact/sha256: must be 64 hex digits', '/validation: must be one of strict, lenient'],
  );
  t.match(
    problemsOf(CreateAttestationRequestSchema, { artifact: { sha256: `${'a'.repeat(64)}\n` }, metadata: {} }),
    [/^\/artifact\/sha256: /],
  );
  t.match(problemsOf(ListBooksRequestSchema, { limit: 0 }), [/^\/limit: must be greater than or equal to 1/]);
  t.match(
    problemsOf(CreateBookRequestSchema, {
      title: 'x',
      authors: [{ lastName: 'ok' }, { firstName: 'much too long' }, { firstName: 'a', lastName: 'a' }],
      pagesByPart: { one: 1, 'a/b': 0 },
    }),
    [
      /^\/authors\/1\/first_name: /,
      '/authors/1/last_name: is required',
      '/authors/2: first and last name must differ',
      /^\/pages_by_part\/a~1b: must be greater than or equal to 1/,
    ],
  );
});

t.test('empty and duplicate items are reported in words', async (t) => {
  const events = [EventType.ATTESTATION_FAILED, EventType.ATTESTATION_FAILED];
  t.same(problemsOf(CreateWebhookRequestSchema, { events }), [
    '/url: must not be empty',
    '/events: must not hold an item twice',
  ]);
  t.same(problemsOf(CreateWebhookRequestSchema, { url: 'a' }), ['/events: must not be empty']);
  t.same(problemsOf(GetUsageRequestSchema, {}), [': must have one of project_id, api_key_id']);
});

t.test('errors of enums list the admitted values by name', async (t) => {
  const url = 'https://hooks.example.com';
  const events = [EventType.WEBHOOK_TEST];
  t.same(problemsOf(CreateWebhookRequestSchema, { url, events }), [
    '/events/0: must be one of attestation.witnessed, attestation.partial, attestation.failed, export.failing',
  ]);
  t.same(problemsOf(UpdateWebhookRequestSchema, { id: 'a', status: WebhookStatus.DELETED }), [
    '/status: must be one of active, disabled',
  ]);
});

t.test('at most a hundred problems are reported', async (t) => {
  const pagesByPart = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`p${i}`, 0]));
  t.equal(problemsOf(CreateBookRequestSchema, { title: 'x', pagesByPart }).length, 100);
});

t.test('JSON objects are unchanged afterwards, in a valid message and in an invalid one', async (t) => {
  const metadata = { schema: 'purl', list: [{ a: 1 }] };
  const items = [
    { artifact: { sha256: 'ab'.repeat(32) }, metadata },
    { artifact: { sha256: 'x' }, metadata },
  ];
  for (const item of items) {
    const message = create(BatchCreateAttestationsRequestSchema, { items: [item] });
    const before = message.items[0]?.metadata;
    const isValid = item.artifact.sha256.length === 64;
    if (isValid) validate(BatchCreateAttestationsRequestSchema, message);
    else t.throws(() => validate(BatchCreateAttestationsRequestSchema, message), { name: 'ApiError' });
    t.equal(message.items[0]?.metadata, before);
    t.same(before, metadata);
  }
});

t.test('the time of a check does not grow with the JSON in a message', async (t) => {
  const [small, large] = [10, 50_000].map((length) =>
    create(CreateAttestationRequestSchema, {
      artifact: { sha256: 'ab'.repeat(32) },
      metadata: { list: Array.from({ length }, () => ({})) },
    }),
  );
  const medianMs = (message = small) => {
    const times = Array.from({ length: 21 }, () => {
      const startMs = performance.now();
      validate(CreateAttestationRequestSchema, message!);
      return performance.now() - startMs;
    });
    return times.sort((a, b) => a - b)[10]!;
  };
  medianMs(small);
  t.ok(medianMs(large) < 0.5, `${medianMs(large)} ms, and ${medianMs(small)} of little JSON`);
});
