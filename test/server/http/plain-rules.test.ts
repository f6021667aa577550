import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { createValidator } from '@bufbuild/protovalidate';
import t from 'tap';
import {
  AttestationService,
  BatchCreateAttestationsRequestSchema,
  CreateAttestationRequestSchema,
  GetAttestationRequestSchema,
  ListAttestationsRequestSchema,
} from '../../../gen/attestation/v1/attestations_pb.js';
import { CreateWebhookRequestSchema, WebhookService } from '../../../gen/attestation/v1/webhooks_pb.js';
import { compilePlainRules } from '../../../src/server/http/call/plain-rules.js';
import { asFields } from '../../../src/server/json/message-codec.js';
import { LibraryService } from '../../gen/library/v1/library_pb.js';

const library = createValidator({
  regexMatch: (pattern, against) => new RegExp(pattern, 'u').test(against),
});

const TEXTS = [
  '',
  'x',
  'ab'.repeat(32),
  'AB'.repeat(32),
  `${'ab'.repeat(32)}\n`,
  `sub_${'0'.repeat(26)}`,
  '\u{1f600}',
  '\u{1f600}'.repeat(40),
  'y'.repeat(64),
  'y'.repeat(65),
];
const NUMBERS = [0, 1, 2, 9, -1];

/** Values of a field, undefined for one that is not set. */
function valuesOf(field: DescField, depth: number): unknown[] {
  if (field.fieldKind === 'enum') return NUMBERS;
  if (field.fieldKind === 'scalar') return field.scalar === ScalarType.STRING ? TEXTS : [undefined];
  if (field.fieldKind !== 'message') return [undefined];
  if (field.message.typeName === 'google.protobuf.Struct') return [undefined, {}, { schema: 'purl' }];
  if (field.message.file.proto.package === 'google.protobuf' || depth === 0) return [undefined];
  return [undefined, ...messagesOf(field.message, depth - 1)];
}

/** Messages of a type: of each field each value, beside the first and the last values of the others. */
function messagesOf(desc: DescMessage, depth = 2): Message[] {
  const values = desc.fields.map((field) => [field.localName, valuesOf(field, depth)] as const);
  const filled = (pick: (of: readonly unknown[]) => unknown) =>
    values.flatMap(([name, of]) => of.map((value) => ({ ...bare(values, pick), [name]: value })));
  return [...filled((of) => of[0]), ...filled((of) => of[2] ?? of[0]), ...filled((of) => of.at(-1))].map(
    (init) =>
      create(desc, Object.fromEntries(Object.entries(init).filter(([, value]) => value !== undefined))),
  );
}

function bare(values: readonly (readonly [string, unknown[]])[], pick: (of: readonly unknown[]) => unknown) {
  return Object.fromEntries(values.map(([name, of]) => [name, pick(of)]));
}

t.test(
  'what keeps the plain rules keeps those of the library, and nearly always the other way round',
  async (t) => {
    const services = [AttestationService, WebhookService, LibraryService];
    const inputs = new Set(services.flatMap(({ methods }) => methods.map(({ input }) => input)));
    let compiled = 0;
    const counts = { kept: 0, doubted: 0, broken: 0 };
    for (const desc of inputs) {
      const keeps = compilePlainRules(desc);
      if (keeps === undefined) continue;
      compiled++;
      for (const message of messagesOf(desc)) {
        const [isKept, isValid] = [
          keeps(asFields(message)),
          library.validate(desc, message).kind === 'valid',
        ];
        if (isKept && !isValid) t.fail(`${desc.typeName} ${JSON.stringify(message)}`);
        counts[isKept ? 'kept' : isValid ? 'doubted' : 'broken']++;
      }
    }
    t.ok(compiled >= 10, `${compiled} types have plain rules only`);
    t.ok(counts.kept > 10 * counts.doubted && counts.broken > 0, JSON.stringify(counts));
  },
);

t.test('creates and reads have plain rules only', async (t) => {
  const create201 = compilePlainRules(CreateAttestationRequestSchema);
  const artifact = { sha256: 'aB'.repeat(32) };
  const keeps = (init: object) => create201?.(asFields(create(CreateAttestationRequestSchema, init)));
  t.equal(keeps({ artifact, metadata: {} }), true);
  t.equal(keeps({ artifact, metadata: {}, validation: 2 }), true);
  t.equal(keeps({ artifact, metadata: {}, validation: 9 }), false);
  t.equal(keeps({ artifact }), false);
  t.equal(keeps({ metadata: {} }), false);
  t.equal(keeps({ artifact: { sha256: '' }, metadata: {} }), false);
  t.equal(keeps({ artifact: { sha256: `${'a'.repeat(64)}\n` }, metadata: {} }), false);
  const read = compilePlainRules(GetAttestationRequestSchema);
  const isRead = (id: string) => read?.(asFields(create(GetAttestationRequestSchema, { id })));
  t.equal(isRead('y'), true);
  t.equal(isRead('y'.repeat(64)), true);
  t.equal(isRead('y'.repeat(65)), false);
  t.equal(isRead(''), false);
});

t.test('types with rules of other kinds are left to the library', async (t) => {
  const others = [
    ListAttestationsRequestSchema,
    BatchCreateAttestationsRequestSchema,
    CreateWebhookRequestSchema,
  ];
  for (const desc of others) t.equal(compilePlainRules(desc), undefined, desc.typeName);
});
