import type { DescMessage, Message } from '@bufbuild/protobuf';
import type { HttpBody } from '../../../../gen/google/api/httpbody_pb.js';
import { findFieldValue } from '../../json/field.js';
import { findWritten } from '../../json/serialized.js';
import { asFields } from '../../json/value.js';
import { compileFieldWriter, compileWriter } from '../../json/writer.js';
import { isHttpBody } from './request.js';

/** The body of an answer, its content type, and its entity tag where that is known already. */
export type Payload = { contentType: string; body: Uint8Array; etag?: string };

const JSON_TYPE = 'application/json';

/** Makes the function that spells an RPC's answers. Throws when the type has no spelling, or no field of this name. */
export function compileResponse(desc: DescMessage, responseBody: string): (message: Message) => Payload {
  if (responseBody === '') {
    if (isHttpBody(desc)) return (message) => rawPayload(message as HttpBody);
    const write = compileWriter(desc);
    return (message) => {
      const written = findWritten(message);
      if (written === undefined) return jsonPayload(write(message));
      return { contentType: JSON_TYPE, body: written.bytes, etag: written.etag };
    };
  }
  const field = desc.fields.find(({ name }) => name === responseBody);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${responseBody} for the answer`);
  if (field.fieldKind === 'message' && isHttpBody(field.message)) {
    return (message) => rawPayload(findFieldValue(field, asFields(message)) as HttpBody | undefined);
  }
  const write = compileFieldWriter(field);
  return (message) => jsonPayload(write(asFields(message)));
}

/** As bytes at once: a string put together from many pieces is twice as slow to send. */
export function jsonPayload(text: string): Payload {
  return { contentType: JSON_TYPE, body: Buffer.from(text) };
}

function rawPayload(body: HttpBody | undefined): Payload {
  return {
    contentType: body?.contentType || 'application/octet-stream',
    body: body?.data ?? new Uint8Array(),
  };
}
