import type { DescField, DescMessage, JsonObject, Registry } from '@bufbuild/protobuf';
import { type ErrorCode, ErrorEnvelopeSchema } from '../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../protocol/error-rules.js';
import { type Components, refTo } from './components.js';
import { findMessageExample } from './example.js';
import { messageRef, messageSchema } from './schema.js';

/** The message types of errors, from the given protos. */
export type ErrorMessages = { registry: Registry; envelope: DescMessage };

/** Finds them. Throws if the protos have no envelope. */
export function errorMessages(registry: Registry): ErrorMessages {
  return { registry, envelope: getMessage(registry, ErrorEnvelopeSchema.typeName) };
}

/** Refers to the schema of one error: the envelope with its code and its details. */
export function errorSchemaRef(
  components: Components,
  { registry, envelope }: ErrorMessages,
  code: ErrorCode,
): JsonObject {
  const rules = errorRules(code);
  const name = `${pascal(rules.code)}Error`;
  const details =
    rules.details === ''
      ? { type: 'object', maxProperties: 0 }
      : messageRef(components, getMessage(registry, rules.details), 'response');
  const narrowed = { code: { type: 'string', const: rules.code }, details };
  const members = envelope.fields.map((field) => [field.name, errorMember(components, field, narrowed)]);
  components.schemas.set(name, {
    ...messageSchema(components, envelope, 'response', []),
    description: rules.summary,
    properties: Object.fromEntries(members),
    required: envelope.fields.map((field) => field.name),
  });
  return refTo('schemas', name);
}

function errorMember(components: Components, { message }: DescField, narrowed: JsonObject): JsonObject {
  if (message === undefined) throw new Error('an error envelope holds messages');
  return narrow(messageSchema(components, message, 'response', message.fields), narrowed);
}

/** An object's schema with some of its properties replaced. */
export function narrow(schema: JsonObject, properties: JsonObject): JsonObject {
  return { ...schema, properties: { ...(schema.properties as JsonObject), ...properties } };
}

/** Refers to an example of one error. */
export function errorExampleRef(
  components: Components,
  { registry, envelope }: ErrorMessages,
  code: ErrorCode,
): JsonObject {
  const rules = errorRules(code);
  const { error } = (findMessageExample(components, envelope, 'response') ?? {}) as { error?: JsonObject };
  const details =
    rules.details === ''
      ? {}
      : (findMessageExample(components, getMessage(registry, rules.details), 'response') ?? {});
  const value = { error: { ...error, code: rules.code, message: rules.summary, details } };
  components.examples.set(rules.code, { value });
  return refTo('examples', rules.code);
}

/** `SubmissionNotFound` of `submission.not_found`. */
export function pascal(text: string): string {
  return text.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** A message of the given protos by its full name. */
export function getMessage(registry: Registry, typeName: string): DescMessage {
  const desc = registry.getMessage(typeName);
  if (desc === undefined) throw new Error(`no message is called ${typeName}`);
  return desc;
}
