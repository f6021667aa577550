import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf';
import { type HttpBody, HttpBodySchema } from '../../../../gen/google/api/httpbody_pb.js';
import { compileFieldReader, compileMessageReader } from '../../json/codec.js';
import { asFields, type Fields, fieldSetter } from '../../json/field.js';
import { invalidRequest, type Reading, startReading } from '../../json/problems.js';
import { readJson } from '../../json/strict-json.js';
import type { HttpBinding } from './http-rule.js';
import { type BodyJson, compilePathReader } from './path-reader.js';
import { compileQueryReader } from './query.js';

/** The parts of an HTTP request that make its message. */
type RequestParts = {
  /** The path's segments as they were sent, without the verb. */
  segments: readonly string[];
  /** The query as it was sent, without `?`. */
  query: string;
  body: Uint8Array;
  contentType: string;
  /** Maximum number of values in the Structs of a JSON body. */
  maxValues: number;
};

/** What a body may be: JSON, bytes of any type, or absent. */
export type BodyKind = 'json' | 'raw' | 'none';

/** Reads the requests of one binding as messages. */
export type RequestReader = {
  bodyKind: BodyKind;
  /** Throws `request.malformed_json` or `request.invalid`. */
  read: (parts: RequestParts) => Message;
};

/** Makes the reader of one binding. Throws when its template or its body do not fit the message type. */
export function compileRequest(desc: DescMessage, { template, body }: HttpBinding): RequestReader {
  const readPath = compilePathReader(desc, template);
  const names = template.variables.map(({ fieldPath }) => fieldPath.join('.'));
  if (names.includes(body)) throw new Error(`${body} is bound by the path and by the body`);
  const { kind, read: readBody } = compileBody(desc, body);
  const readQuery = compileQueryReader(desc, body === '' ? names : [...names, body]);
  return {
    bodyKind: kind,
    read: (parts) => {
      const reading = startReading();
      const { message, json } = readBody(parts, reading);
      if (message === undefined) throw invalidRequest(reading.problems);
      readPath(parts.segments, message, reading, json);
      if (parts.query !== '') readQuery(parts.query, message, reading);
      if (reading.problems.length > 0) throw invalidRequest(reading.problems);
      return message as unknown as Message;
    },
  };
}

/** The message that a body makes, undefined when the body is no object, and the JSON it came from. */
type ReadBody = { message: Fields | undefined; json?: BodyJson };
type BodyReader = { kind: BodyKind; read: (parts: RequestParts, reading: Reading) => ReadBody };

function compileBody(desc: DescMessage, body: string): BodyReader {
  if (body === '') return { kind: 'none', read: () => ({ message: newMessage(desc) }) };
  if (body === '*') {
    return isHttpBody(desc)
      ? { kind: 'raw', read: (parts) => ({ message: asFields(httpBody(parts)) }) }
      : wholeBody(desc);
  }
  const field = desc.fields.find(({ name }) => name === body);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${body} for the body`);
  return field.fieldKind === 'message' && isHttpBody(field.message)
    ? rawFieldBody(desc, field)
    : fieldBody(desc, field);
}

function wholeBody(desc: DescMessage): BodyReader {
  const read = compileMessageReader(desc);
  return {
    kind: 'json',
    read: ({ body, maxValues }, reading) => {
      // Clients leave an empty object out.
      const json = body.length === 0 ? {} : readJson(body, maxValues);
      return { message: read(json, reading), json: { value: json, field: undefined } };
    },
  };
}

function fieldBody(desc: DescMessage, field: DescField): BodyReader {
  const read = compileFieldReader(field);
  return {
    kind: 'json',
    read: ({ body, maxValues }, reading) => {
      const message = newMessage(desc);
      if (body.length === 0) return { message };
      const value = readJson(body, maxValues);
      read(value, message, reading);
      return { message, json: { value, field: field.name } };
    },
  };
}

function rawFieldBody(desc: DescMessage, field: DescField): BodyReader {
  const set = fieldSetter(field);
  return {
    kind: 'raw',
    read: (parts, reading) => {
      const message = newMessage(desc);
      set(message, httpBody(parts), reading);
      return { message };
    },
  };
}

function httpBody({ body, contentType }: RequestParts): HttpBody {
  return create(HttpBodySchema, { contentType, data: body });
}

/** Whether bodies of this type are bytes of any content type. */
export function isHttpBody(desc: DescMessage): boolean {
  return desc.typeName === HttpBodySchema.typeName;
}

function newMessage(desc: DescMessage): Fields {
  return asFields(create(desc));
}
