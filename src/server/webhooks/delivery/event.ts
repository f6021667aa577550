import { hash } from 'node:crypto';
import { create, getOption, type JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { BatchStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import {
  type Event,
  EventSchema,
  EventType,
  EventTypeSchema,
  FailedEventDataSchema,
  PartialEventDataSchema,
  TestEventDataSchema,
  WitnessedEventDataSchema,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { http } from '../../../../gen/google/api/annotations_pb.js';
import { enumNamesByNumber } from '../../../protocol/enum-names.js';
import { compileWriter } from '../../json/codec.js';
import type { EventSource } from '../store/webhook-deliveries.js';

const FAILED_REASON = 'no required witness vouched for the batch before its deadline';
const TYPE_OF_TRANSITION: ReadonlyMap<number, EventType> = new Map([
  [BatchStatus.WITNESSED, EventType.ATTESTATION_WITNESSED],
  [BatchStatus.PARTIAL, EventType.ATTESTATION_PARTIAL],
  [BatchStatus.FAILED, EventType.ATTESTATION_FAILED],
]);

const TYPE_NAMES = enumNamesByNumber(EventTypeSchema);

const writeEvent = compileWriter(EventSchema);
const writeWitnessed = compileWriter(WitnessedEventDataSchema);
const writePartial = compileWriter(PartialEventDataSchema);
const writeFailed = compileWriter(FailedEventDataSchema);
const writeTest = compileWriter(TestEventDataSchema);

/** The event type of a batch's transition. Throws if the status has none. */
export function eventTypeOf(transition: number): EventType {
  const type = TYPE_OF_TRANSITION.get(transition);
  if (type === undefined) throw new Error(`a batch's status ${transition} has no event type`);
  return type;
}

/** The event of a delivery. It depends only on the submission and the transition. */
export function eventOf(delivery: EventSource, baseUrl: string): Event {
  const head = headOf(delivery);
  return { ...head, data: JSON.parse(dataOf(head.type, delivery, baseUrl)) as JsonObject };
}

/** An event's id and its body: JSON in the form of the REST API. */
export function eventText(delivery: EventSource, baseUrl: string): { id: string; body: string } {
  const head = headOf(delivery);
  const data = dataOf(head.type, delivery, baseUrl);
  return { id: head.id, body: `${writeEvent(head).slice(0, -1)},"data":${data}}` };
}

/** An event without its data. */
function headOf({ transition, submissionId, exportId, detail, id, occurredAt }: EventSource): Event {
  const created = timestampFromDate(occurredAt);
  if (exportId !== null) {
    const type = EventType.EXPORT_FAILING;
    return create(EventSchema, { id: eventId(exportId, type, detail ?? ''), type, created });
  }
  const isTest = transition === null || submissionId === null;
  const type = isTest ? EventType.WEBHOOK_TEST : eventTypeOf(transition);
  return create(EventSchema, { id: eventId(isTest ? id : submissionId, type), type, created });
}

function dataOf(
  type: EventType,
  { webhookId, submissionId, landed, missing, detail }: EventSource,
  baseUrl: string,
) {
  const submission = submissionId ?? '';
  const bundleUrl = baseUrl + bundlePath(submission);
  switch (type) {
    case EventType.ATTESTATION_WITNESSED:
      return writeWitnessed(create(WitnessedEventDataSchema, { submissionId: submission, bundleUrl }));
    case EventType.ATTESTATION_PARTIAL: {
      const witnesses = { landed: landed ?? [], missing: missing ?? [] };
      return writePartial(
        create(PartialEventDataSchema, { submissionId: submission, bundleUrl, ...witnesses }),
      );
    }
    case EventType.ATTESTATION_FAILED: {
      const reason = { reason: FAILED_REASON, missing: missing ?? [] };
      return writeFailed(create(FailedEventDataSchema, { submissionId: submission, ...reason }));
    }
    case EventType.EXPORT_FAILING:
      return detail ?? '{}';
    default:
      return writeTest(create(TestEventDataSchema, { webhookId }));
  }
}

const BUNDLE_PATH = getOption(AttestationService.method.getBundle, http).pattern.value as string;

function bundlePath(submissionId: string): string {
  return BUNDLE_PATH.replace('{id}', submissionId);
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const PREFIX_LENGTH = 4;
const ULID_TIME_LENGTH = 10;

/**
 * `evt_` and a ULID: its time is that of the id of the submission, export or test delivery, its random part the first 80
 * bits of SHA-256 over the type, that id and, of an export, the event's data.
 */
function eventId(subjectId: string, type: EventType, data = ''): string {
  const digest = hash('sha256', `${TYPE_NAMES.get(type)} ${subjectId}${data}`, 'buffer');
  const random = base32(digest.readUIntBE(0, 5)) + base32(digest.readUIntBE(5, 5));
  return `evt_${subjectId.slice(PREFIX_LENGTH, PREFIX_LENGTH + ULID_TIME_LENGTH)}${random}`;
}

/** Forty bits as eight characters. */
function base32(bits: number): string {
  let text = '';
  for (let rest = bits; text.length < 8; rest = Math.floor(rest / 32))
    text = CROCKFORD.charAt(rest % 32) + text;
  return text;
}
