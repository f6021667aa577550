/** Webhook events, with `data` parsed as the message of the event's type. */
import { type DescMessage, fromJson, getOption, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { event_data } from '../../gen/attestation/options/v1/options_pb.js';
import {
  type Event,
  EventSchema,
  EventType,
  EventTypeSchema,
  type FailedEventData,
  file_attestation_v1_webhooks,
  type PartialEventData,
  type TestEventData,
  type WitnessedEventData,
} from '../../gen/attestation/v1/webhooks_pb.js';
import { fromUtf8 } from '../proof/bytes/encoding.js';
import { findEnumNumber } from '../protocol/enum-names.js';
import { WebhookVerificationError } from './webhook-verification-error.js';

/** An event; `type` determines what `data` is. A type unknown to this library is `UNSPECIFIED`: ignore the event. */
export type WebhookEvent =
  | Typed<EventType.ATTESTATION_WITNESSED, WitnessedEventData>
  | Typed<EventType.ATTESTATION_PARTIAL, PartialEventData>
  | Typed<EventType.ATTESTATION_FAILED, FailedEventData>
  | Typed<EventType.WEBHOOK_TEST, TestEventData>
  | Typed<EventType.UNSPECIFIED, JsonObject>;

type Typed<T extends EventType, D> = Omit<Event, 'type' | 'data'> & { type: T; data: D };

/** Members added by a newer service are ignored. */
const LENIENT = { ignoreUnknownFields: true };

/** Parses the event in a delivery's body. Throws WebhookVerificationError `body.invalid`. */
export function parseEvent(body: Uint8Array): WebhookEvent {
  try {
    return readEvent(JSON.parse(fromUtf8(body)));
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown';
    throw new WebhookVerificationError('body.invalid', `the body is no event: ${reason}`, { cause: error });
  }
}

function readEvent(json: JsonObject): WebhookEvent {
  const { type: typeName, ...rest } = json;
  if (typeof typeName !== 'string') throw new Error('it has no type');
  const type: EventType = findEnumNumber(EventTypeSchema, typeName) ?? EventType.UNSPECIFIED;
  const event = fromJson(EventSchema, { ...rest, type }, LENIENT);
  if (event.id === '' || event.data === undefined) throw new Error('it has no id or no data');
  // The options of EventType say which message `data` is; that they agree with WebhookEvent is tested.
  return { ...event, type, data: readData(type, event.data) } as WebhookEvent;
}

function readData(type: EventType, data: JsonObject): unknown {
  const desc = findDataDesc(type);
  return desc === undefined ? data : fromJson(desc, data as JsonValue, LENIENT);
}

function findDataDesc(type: EventType): DescMessage | undefined {
  const value = EventTypeSchema.value[type];
  const typeName = value && getOption(value, event_data);
  return file_attestation_v1_webhooks.messages.find((message) => message.typeName === typeName);
}
