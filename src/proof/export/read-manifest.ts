/** Reads a manifest. Verifies no signature. */
import { withoutByteOrderMark } from '../../protocol/byte-order-mark.js';
import { fromBase64, fromUtf8, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { IN_TOTO_PAYLOAD_TYPE } from '../statement/dsse.js';
import {
  earlierManifestEnvelope,
  MANIFEST_PREDICATE_TYPE,
  manifestEnvelope,
  manifestStatement,
} from './manifest.js';
import type { ManifestFields, ManifestLog, ManifestObject } from './manifest-fields.js';

/** Maximum length of a manifest: a day with a batch each second has one of about 45 MiB. */
export const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

/** A manifest as signed: `statement` is the payload. */
export type SignedManifest = {
  readonly fields: ManifestFields;
  readonly statement: Uint8Array;
  readonly signature: Uint8Array;
};

/**
 * Reads a manifest's bytes. Throws FormatError unless they are exactly those that {@link manifestEnvelope} makes of its
 * statement and signature, after a byte order mark perhaps, and the statement is one that {@link manifestStatement} makes.
 */
export function readManifest(bytes: Uint8Array): SignedManifest {
  const envelope = readManifestEnvelope(bytes);
  return { fields: parseManifestStatement(envelope.statement), ...envelope };
}

/** Reads the envelope of a manifest, whatever its statement says. Throws FormatError like {@link readManifest}. */
export function readManifestEnvelope(bytes: Uint8Array): Omit<SignedManifest, 'fields'> {
  if (bytes.length > MAX_MANIFEST_BYTES) throw new FormatError('a manifest is longer than 64 MiB');
  const text = withoutByteOrderMark(fromUtf8(bytes));
  const { payload, payloadType, signatures } = parseObject(text, 'a manifest');
  if (payloadType !== IN_TOTO_PAYLOAD_TYPE) {
    throw new FormatError('a manifest is not a DSSE envelope of an in-toto statement');
  }
  const [first] = arrayOf(signatures);
  const statement = fromBase64(textOf(payload));
  const signature = fromBase64(textOf(objectOf(first).sig));
  const forms = [manifestEnvelope, earlierManifestEnvelope];
  if (!forms.some((form) => equalBytes(form(statement, signature), utf8(text)))) {
    throw new FormatError('a manifest is not canonical, or has unknown members or several signatures');
  }
  return { statement, signature };
}

/** Reads a statement. Throws FormatError unless the bytes are exactly those that {@link manifestStatement} makes of its fields. */
export function parseManifestStatement(bytes: Uint8Array): ManifestFields {
  const { predicate, predicateType, subject } = parseObject(fromUtf8(bytes), "a manifest's statement");
  if (predicateType !== MANIFEST_PREDICATE_TYPE) {
    throw new FormatError(`a statement's predicateType is not ${MANIFEST_PREDICATE_TYPE}`);
  }
  const fields = fieldsOf(objectOf(predicate), arrayOf(subject));
  if (!equalBytes(manifestStatement(fields), bytes)) {
    throw new FormatError("a manifest's statement is not canonical, or has unknown members");
  }
  return fields;
}

type Json = Readonly<Record<string, unknown>>;

/** Picks the fields out without a look at anything else: the comparison of the bytes covers the rest. */
function fieldsOf(predicate: Json, subject: readonly unknown[]): ManifestFields {
  const environment = textOf(predicate.environment);
  if (environment !== 'live' && environment !== 'test') throw new FormatError('an environment is not known');
  const { filter_schema: schema, is_complete: isComplete, project } = predicate;
  if (typeof isComplete !== 'boolean') throw new FormatError('is_complete is neither true nor false');
  return {
    exportId: textOf(predicate.export),
    project: project === null ? null : textOf(project),
    environment,
    day: textOf(predicate.day),
    filterSchema: schema === null ? null : textOf(schema),
    revision: numberOf(predicate.revision),
    isComplete,
    objects: arrayOf(predicate.objects).map((object, i) => readObject(objectOf(object), subject[i])),
    logs: arrayOf(predicate.logs).map((log) => readLog(objectOf(log))),
  };
}

function readObject(object: Json, subject: unknown): ManifestObject {
  return {
    name: textOf(object.name),
    sha256: textOf(objectOf(objectOf(subject).digest).sha256),
    batchId: textOf(object.batch_id),
    log: textOf(object.log),
    firstIndex: numberOf(object.first_index),
    treeSize: numberOf(object.tree_size),
    submissions: numberOf(object.submissions),
    bytes: numberOf(object.bytes),
    revision: numberOf(object.revision),
  };
}

function readLog({ origin, start, from, to }: Json): ManifestLog {
  return { origin: textOf(origin), start: numberOf(start), from: numberOf(from), to: numberOf(to) };
}

function parseObject(text: string, what: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FormatError(`${what} is not JSON, or is cut off`);
  }
  return objectOf(value);
}

function objectOf(value: unknown): Json {
  if (typeof value !== 'object' || value === null) throw new FormatError('a member is not an object');
  return value as Json;
}

function arrayOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new FormatError('a member is not an array');
  return value;
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new FormatError('a member is not a text');
  return value;
}

function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw new FormatError('a member is not a number');
  return value;
}
