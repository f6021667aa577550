/** What callers read of a text that does not have its form: words, no regular expression. */
import { create, type DescField, type DescMessage, getOption, type Message } from '@bufbuild/protobuf';
import t from 'tap';
import { form } from '../../../../gen/attestation/options/v1/options_pb.js';
import { CreateExportRequestSchema, DestinationKind } from '../../../../gen/attestation/v1/exports_pb.js';
import { EventSchema } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { createValidate } from '../../../../src/server/http/call/validate.js';
import { findItemRules, findRules } from '../../../../src/server/json/field-rules.js';
import { ADMIN_METHODS } from '../../../support/calling/admin.js';
import { publicMethods } from '../../../support/calling/rpcs.js';

/** All messages of the public API and the admin API. */
async function allMessages(): Promise<DescMessage[]> {
  const seen = new Set<DescMessage>();
  const visit = (desc: DescMessage) => {
    if (seen.has(desc) || desc.typeName.startsWith('google.')) return;
    seen.add(desc);
    for (const { message } of desc.fields) if (message !== undefined) visit(message);
  };
  for (const { input, output } of [...(await publicMethods()), ...ADMIN_METHODS]) {
    visit(input);
    visit(output);
  }
  for (const desc of EventSchema.file.messages) visit(desc);
  return [...seen];
}

/** The pattern of a field, or of its items. */
function patternOf(field: DescField): string {
  const rules = findRules(field);
  for (const one of [rules, findItemRules(rules)]) {
    if (one?.type.case === 'string' && one.type.value.pattern !== '') return one.type.value.pattern;
    if (one?.type.case === 'bytes' && one.type.value.pattern !== '') return one.type.value.pattern;
  }
  return '';
}

const fields = (await allMessages())
  .flatMap((desc) => desc.fields)
  .filter((field) => patternOf(field) !== '');

t.test('every pattern has its words', async (t) => {
  t.ok(fields.length > 20, String(fields.length));
  const without = fields.filter((field) => getOption(field, form) === '');
  t.same(
    without.map(({ parent, name }) => `${parent.name}.${name}`),
    [],
  );
});

/** The message of the problem of a field. */
function problemOf(desc: DescMessage, message: Message, name: string): string {
  try {
    createValidate()(desc, message);
  } catch (error) {
    const { details } = error as { details: { errors: { path: string; message: string }[] } };
    const found = details.errors.filter(({ path }) => path.endsWith(`/${name}`));
    return found.map(({ message: text }) => text).join('; ');
  }
  return '';
}

t.test('they are what a text without the form gets as its error', async (t) => {
  for (const field of fields) {
    if (field.fieldKind !== 'scalar') continue;
    const { parent, localName, name } = field;
    const problem = problemOf(parent, create(parent, { [localName]: '\u0001' } as never), name);
    t.ok(problem.includes(`must be ${getOption(field, form)}`), `${parent.name}.${name}: ${problem}`);
    t.notOk(problem.includes(patternOf(field)), problem);
    t.notMatch(problem, /regex|pattern/);
  }
});

t.test('a prefix may end in a slash, and in one only', async (t) => {
  const problem = (prefix: string) => {
    const destination = { kind: DestinationKind.S3, bucket: 'a-bucket', prefix };
    return problemOf(CreateExportRequestSchema, create(CreateExportRequestSchema, { destination }), 'prefix');
  };
  for (const prefix of ['a', 'a/', 'a/b/', 'a.b/_c=1-/']) t.equal(problem(prefix), '', prefix);
  for (const prefix of ['', '/', '/a', 'a//', 'a//b', '.a/', 'a/../b', 'a b/']) {
    t.match(problem(prefix), /must be path segments/, JSON.stringify(prefix));
  }
});
