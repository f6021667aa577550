import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf';
import { type HttpBody, HttpBodySchema } from '../../../../gen/google/api/httpbody_pb.js';
import { compileFieldReader, compileMessageReader } from '../../json/codec.js';
import { asFields, type Fields, fieldSetter } from '../../json/message-codec.js';
import { invalidRequest, type Reading, startReading } from '../../json/problems.js';
import { readJson } from '../../json/strict-json.js';
import {
  bodyLength,
  type HoldBytes,
  readStream,
  takeReceived,
  tooLarge,
  unsupported,
} from '../socket/bodies.js';
import type { NodeRequest } from '../socket/requests.js';
import { type BodyJson, compilePathReader } from './field-path.js';
import type { HttpBinding } from './http-rule.js';
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

/** Kinds of bodies: JSON, bytes of any type, or none. */
type BodyKind = 'json' | 'raw' | 'none';

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
  const { kind, read: readMessage } = compileBody(desc, body);
  const readQuery = compileQueryReader(desc, body === '' ? names : [...names, body]);
  return {
    bodyKind: kind,
    read: (parts) => {
      const reading = startReading();
      const { message, json } = readMessage(parts, reading);
      if (message === undefined) throw invalidRequest(reading.problems);
      if (names.length > 0) readPath(parts.segments, message, reading, json);
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
      // A request without a body and its type leaves the field out.
      if (parts.body.length > 0 || parts.contentType !== '') set(message, httpBody(parts), reading);
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

const NO_BODY = new Uint8Array();

/**
 * Reads a request's body. Rejects with `request.too_large` and `request.unsupported_media_type` before it reads anything
 * if the headers suffice, `request.invalid` for a body that the route does not take, ClientGone.
 */
export async function readBody(
  req: NodeRequest,
  kind: BodyKind,
  maxBytes: number,
  hold: HoldBytes,
): Promise<Uint8Array> {
  const length = bodyLength(req);
  if (length === 0) return NO_BODY;
  if (kind === 'none') return refuseBody(req, length, hold);
  if (length !== undefined && length > maxBytes) throw tooLarge(maxBytes);
  checkMediaType(req, kind);
  const tooMuch = () => tooLarge(maxBytes);
  return takeReceived(req, maxBytes, tooMuch, hold) ?? readStream(req, maxBytes, tooMuch, hold);
}

async function refuseBody(
  req: NodeRequest,
  length: number | undefined,
  hold: HoldBytes,
): Promise<Uint8Array> {
  const problem = () => invalidRequest([{ path: '', message: 'must not have a body' }]);
  if (length !== undefined) throw problem();
  return readStream(req, 0, problem, hold);
}

function checkMediaType({ headers }: NodeRequest, kind: BodyKind): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupported('the body must not be compressed', { 'accept-encoding': 'identity' });
  }
  if (kind === 'json' && !isJsonType(headers['content-type'] ?? '')) {
    throw unsupported('the body must be application/json in UTF-8', { accept: 'application/json' });
  }
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
/** A parameter of a media type (RFC 9110, 5.6.6); a quoted value may hold semicolons. */
const PARAMETER = /;[ \t]*([^\s"=;]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"?|([^";\s]*))/g;

/** Whether a `Content-Type` is JSON in UTF-8; parameters other than the charset do not matter. */
function isJsonType(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  if (!JSON_TYPE.test(contentType)) return false;
  for (const [, name = '', quoted, token] of contentType.matchAll(PARAMETER)) {
    if (name.toLowerCase() === 'charset') return /^utf-?8$/i.test(quoted ?? token ?? '');
  }
  return true;
}
