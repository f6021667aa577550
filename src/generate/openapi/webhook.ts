import {
  type DescEnumValue,
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  type JsonObject,
  type Registry,
} from '@bufbuild/protobuf';
import {
  event_data as eventData,
  spelling,
  typed_by as typedBy,
} from '../../../gen/attestation/options/v1/options_pb.js';
import { commentOf, summaryOf, withoutSummary } from './comment.js';
import { type Components, refTo } from './components.js';
import { getMessage, narrow, pascal } from './error-schema.js';
import { findMessageExample } from './example.js';
import { messageRef, messageSchema } from './schema.js';

/** Headers of a webhook request: the service's own and those of Standard Webhooks. */
const HEADERS: readonly JsonObject[] = [
  {
    name: 'Service-Signature',
    description:
      'When it was signed, and one signature for each secret that is valid: HMAC-SHA-256 in hex of the time, a full stop and the raw body.',
    schema: { type: 'string', pattern: '^t=[0-9]+(?:,v1=[0-9a-f]{64})+$' },
  },
  {
    name: 'webhook-id',
    description: 'The id of the event, as in Standard Webhooks.',
    schema: { type: 'string', pattern: '^evt_[0-9A-Z]{26}$' },
  },
  {
    name: 'webhook-timestamp',
    description: 'When it was signed, in seconds since 1970.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  {
    name: 'webhook-signature',
    description: 'The signatures in the format of Standard Webhooks, separated by spaces.',
    schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/]{43}=(?: v1,[A-Za-z0-9+/]{43}=)*$' },
  },
];

const ANSWERS: JsonObject = {
  '2XX': { description: 'The event was taken; it is not sent again.' },
  '410': { description: 'No more events are wanted: the subscription is disabled at once.' },
  default: { description: 'The event was not taken; it is sent again later.' },
};

/** The messages of webhook bodies. */
export function webhookBodies(files: readonly DescFile[]): DescMessage[] {
  return files.flatMap(({ messages }) => messages).filter((desc) => findData(desc) !== undefined);
}

/** The webhooks section: a request for every type of event. */
export function webhooks(
  components: Components,
  registry: Registry,
  bodies: readonly DescMessage[],
): JsonObject {
  const events = bodies.flatMap((body) => {
    const data = getData(body);
    const type = getType(body, data);
    return (type.enum?.values ?? [])
      .filter((value) => getOption(value, eventData) !== '')
      .map((value) => event(components, registry, { body, data, type, value }));
  });
  return Object.fromEntries(events);
}

type EventParts = { body: DescMessage; data: DescField; type: DescField; value: DescEnumValue };

function event(
  components: Components,
  registry: Registry,
  { body, data, type, value }: EventParts,
): [string, JsonObject] {
  const name = getOption(value, spelling);
  const held = getMessage(registry, getOption(value, eventData));
  const schemaName = `${pascal(name)}Event`;
  const narrowed = {
    [type.name]: { type: 'string', const: name },
    [data.name]: messageRef(components, held, 'response'),
  };
  const whole = messageSchema(components, body, 'response', body.fields);
  components.schemas.set(schemaName, { ...narrow(whole, narrowed), description: commentOf(value) });
  const example = {
    ...findMessageExample(components, body, 'response'),
    [type.name]: name,
    [data.name]: findMessageExample(components, held, 'response') ?? {},
  };
  const summary = summaryOf(commentOf(value));
  const operation = {
    operationId: `on${pascal(name)}`,
    summary,
    description: withoutSummary(commentOf(value), summary),
    security: [],
    parameters: HEADERS.map((header) => ({ ...header, in: 'header', required: true })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: refTo('schemas', schemaName), example } },
    },
    responses: ANSWERS,
  };
  return [name, { post: operation }];
}

function findData(desc: DescMessage): DescField | undefined {
  return desc.fields.find((field) => getOption(field, typedBy) !== '');
}

function getData(desc: DescMessage): DescField {
  const data = findData(desc);
  if (data === undefined) throw new Error(`${desc.typeName} is no webhook body`);
  return data;
}

function getType(desc: DescMessage, data: DescField): DescField {
  const name = getOption(data, typedBy);
  const type = desc.fields.find((field) => field.name === name);
  if (type?.fieldKind !== 'enum') throw new Error(`${desc.typeName} has no enum field ${name}`);
  return type;
}
