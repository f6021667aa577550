import type { DescMessage } from '@bufbuild/protobuf';
import type { HttpBody } from '../../../../gen/google/api/httpbody_pb.js';
import { type HandlerResponse, isSerialized, messageOf } from '../../core/call.js';
import { findFieldValue } from '../../json/field.js';
import { asFields } from '../../json/value.js';
import { compileFieldWriter, compileWriter } from '../../json/writer.js';
import { isHttpBody } from './request.js';

/** The body of an answer, its content type, and its entity tag where that is known already. */
export type Payload = { contentType: string; body: Uint8Array; etag?: string | undefined };

const JSON_TYPE = 'application/json';

/** Makes the function that spells an RPC's answers. Throws when the type has no spelling, or no field of this name. */
export function compileResponse(
  desc: DescMessage,
  responseBody: string,
): (response: HandlerResponse) => Payload {
  if (responseBody === '') {
    if (isHttpBody(desc)) return (response) => rawPayload(messageOf(response) as HttpBody);
    const write = compileWriter(desc);
    return (response) => {
      if (!isSerialized(response)) return jsonPayload(write(response));
      const { bytes, etag } = response.json();
      return { contentType: JSON_TYPE, body: bytes, etag };
    };
  }
  const field = desc.fields.find(({ name }) => name === responseBody);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${responseBody} for the answer`);
  if (field.fieldKind === 'message' && isHttpBody(field.message)) {
    return (response) =>
      rawPayload(findFieldValue(field, asFields(messageOf(response))) as HttpBody | undefined);
  }
  const write = compileFieldWriter(field);
  return (response) => jsonPayload(write(asFields(messageOf(response))));
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
