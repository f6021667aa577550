import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { EventType, ExportFailingEventDataSchema } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { compileWriter } from '../../json/codec.js';

const write = compileWriter(ExportFailingEventDataSchema);

/** The event `export.failing`, with its data as JSON. */
export function failingEvent(exportId: string, failingSince: Date, lastError: string) {
  const data = create(ExportFailingEventDataSchema, {
    exportId,
    failingSince: timestampFromDate(failingSince),
    lastError,
  });
  return { exportId, type: EventType.EXPORT_FAILING, data: write(data) };
}
