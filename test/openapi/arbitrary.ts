/** Values that fit a schema of the document, values that may not, and requests made of both. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { Contract, Operation, Parameter } from '../support/judging/contract.js';

/** A request of an operation as it is sent. */
export type FuzzRequest = {
  path: Readonly<Record<string, string>>;
  /** Names and values, before they are encoded. */
  query: readonly (readonly [name: string, value: string])[];
  /** JSON, or bytes that need not be. */
  body: { json: JsonValue } | { bytes: Uint8Array } | undefined;
  headers: Readonly<Record<string, string>>;
  who: 'owner' | 'stranger' | 'nobody';
  isHead: boolean;
};

const MAX_EXAMPLES = 2;

/** What ids begin with that the path has behind these names. */
const PREFIXES: Readonly<Record<string, string>> = {
  attestations: 'sub_',
  batches: 'btc_',
  webhooks: 'whk_',
  deliveries: 'dlv_',
};

/** Text that is easily got wrong. */
const ODD_TEXT = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }).map((text) => text.toWellFormed()),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '%',
    '%00',
    '../..',
    '-0',
    '1e999',
    'null',
    '[]',
    '\ud7ff',
    '𝒳',
    '\u202e',
    "';--",
  ),
  fc.string({ minLength: 1_000, maxLength: 5_000 }),
);

/** Requests of an operation, good ones and all sorts of bad ones; `pool` has values worth naming in paths. */
export function arbitraryRequest(
  contract: Contract,
  operation: Operation,
  pool: readonly string[],
): fc.Arbitrary<FuzzRequest> {
  const named = (where: string) => operation.parameters.filter((parameter) => parameter.in === where);
  return fc.record({
    path: fc.record(
      Object.fromEntries(named('path').map(({ name }) => [name, arbitrarySegment(operation, name, pool)])),
    ),
    query: arbitraryQuery(contract, named('query')),
    body: arbitraryBody(contract, operation),
    headers: arbitraryHeaders(operation),
    who: fc.oneof(
      { weight: 8, arbitrary: fc.constant('owner' as const) },
      fc.constantFrom('stranger', 'nobody'),
    ),
    isHead: operation.method === 'GET' ? fc.boolean() : fc.constant(false),
  });
}

/** Dot segments are resolved by whoever sends a request. */
function arbitrarySegment({ path }: Operation, name: string, pool: readonly string[]): fc.Arbitrary<string> {
  const [, collection = ''] = new RegExp(`([^/]+)/\\{${name}\\}`).exec(path) ?? [];
  const right = pool.filter((id) => id.startsWith(PREFIXES[collection] ?? ''));
  const odd = ODD_TEXT.filter((text) => !['', '.', '..'].includes(text)).map((text) => text.slice(0, 300));
  return fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...right) },
    { weight: 1, arbitrary: fc.constantFrom(...pool) },
    { weight: 1, arbitrary: odd },
  );
}

function arbitraryQuery(
  contract: Contract,
  parameters: readonly Parameter[],
): fc.Arbitrary<[string, string][]> {
  const pairs = parameters.map(({ name, schema }) =>
    fc.oneof(
      { weight: 12, arbitrary: fc.constant([]) },
      { weight: 8, arbitrary: fitting(contract, schema).map((value) => [[name, String(value)]]) },
      { weight: 1, arbitrary: ODD_TEXT.map((text) => [[name, text]]) },
      {
        weight: 1,
        arbitrary: ODD_TEXT.map((text) => [
          [name, text],
          [name, text],
        ]),
      },
    ),
  ) as fc.Arbitrary<[string, string][]>[];
  const unknown = fc.oneof(
    { weight: 9, arbitrary: fc.constant([] as [string, string][]) },
    ODD_TEXT.map((text): [string, string][] => [[text, text]]),
  );
  return fc.tuple(unknown, ...pairs).map((all) => all.flat());
}

function arbitraryBody(contract: Contract, { body }: Operation): fc.Arbitrary<FuzzRequest['body']> {
  const none = fc.constant(undefined);
  const bytes = fc.uint8Array({ maxLength: 64 }).map((value) => ({ bytes: value }));
  if (body === undefined) return fc.oneof({ weight: 9, arbitrary: none }, bytes);
  const good = fitting(contract, body.schema);
  return fc.oneof(
    { weight: 5, arbitrary: good.map((json) => ({ json })) },
    { weight: 5, arbitrary: good.chain(damaged).map((json) => ({ json })) },
    { weight: 1, arbitrary: anyJson().map((json) => ({ json })) },
    { weight: 1, arbitrary: bytes },
    { weight: 1, arbitrary: none },
  );
}

function arbitraryHeaders(operation: Operation): fc.Arbitrary<Record<string, string>> {
  const visible = fc.string({ unit: 'grapheme-ascii', maxLength: 300 });
  const optional = operation.parameters
    .filter((parameter) => parameter.in === 'header')
    .map(({ name }) => [name.toLowerCase(), visible] as const);
  const type = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom('application/json', 'application/json; charset=UTF-8') },
    fc.constantFrom('text/plain', '', 'application/json; charset=latin1'),
  );
  const headers = { ...Object.fromEntries(optional), 'content-type': type };
  return fc.record(headers, { requiredKeys: [] }) as fc.Arbitrary<Record<string, string>>;
}

/** Values that fit a schema. */
function fitting(contract: Contract, reference: JsonObject): fc.Arbitrary<JsonValue> {
  const schema = contract.resolve(reference);
  const given = ((reference.examples ?? schema.examples ?? []) as JsonValue[]).slice(0, MAX_EXAMPLES);
  const made = fittingType(contract, schema).filter(
    (value) => contract.findMisfits(reference, value).length === 0,
  );
  return given.length === 0 ? made : fc.oneof(fc.constantFrom(...given), made);
}

function fittingType(contract: Contract, schema: JsonObject): fc.Arbitrary<JsonValue> {
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'string':
      return fittingText(schema);
    case 'integer':
      return fc.integer({
        min: Number(schema.minimum ?? -(2 ** 31)),
        max: Number(schema.maximum ?? 2 ** 31 - 1),
      });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(fitting(contract, schema.items as JsonObject), {
        minLength: Number(schema.minItems ?? 0),
        maxLength: Math.min(Number(schema.maxItems ?? 5), 5),
      });
    case 'object':
      return fittingObject(contract, schema);
    default:
      return anyJson();
  }
}

function fittingText(schema: JsonObject): fc.Arbitrary<string> {
  if (schema.format === 'date-time') {
    return fc
      .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (typeof schema.pattern === 'string') return fc.stringMatching(new RegExp(schema.pattern));
  const minLength = Number(schema.minLength ?? 0);
  return fc
    .string({
      unit: 'binary',
      minLength,
      maxLength: Math.min(Number(schema.maxLength ?? 100), minLength + 100),
    })
    .map((text) => text.toWellFormed().replaceAll('\0', '0'));
}

function fittingObject(contract: Contract, schema: JsonObject): fc.Arbitrary<JsonValue> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonObject>);
  const members = Object.fromEntries(properties.map(([name, member]) => [name, fitting(contract, member)]));
  const known = fc.record(members, { requiredKeys: (schema.required ?? []) as string[] });
  if (schema.additionalProperties !== true) return known as fc.Arbitrary<JsonObject>;
  const more = fc.dictionary(plainText(), anyJson(), { maxKeys: 4 });
  return fc.tuple(more, known).map(([some, others]) => ({ ...some, ...others }) as JsonObject);
}

/** Some member of a value replaced, left out or added, at any depth. */
function damaged(value: JsonValue): fc.Arbitrary<JsonValue> {
  if (typeof value !== 'object' || value === null) return anyJson();
  const names = Object.keys(value);
  const added = fc
    .tuple(plainText(), anyJson())
    .map(([name, extra]) => ({ ...value, [name]: extra }) as JsonValue);
  if (names.length === 0) return fc.oneof(added, anyJson());
  return fc.oneof(
    added,
    fc.constantFrom(...names).map((name) => without(value, name)),
    fc
      .constantFrom(...names)
      .chain((name) =>
        damaged((value as JsonObject)[name] as JsonValue).map((inner) => replaced(value, name, inner)),
      ),
  );
}

function without(value: JsonValue & object, name: string): JsonValue {
  if (Array.isArray(value)) return value.filter((_, at) => String(at) !== name);
  return Object.fromEntries(Object.entries(value).filter(([other]) => other !== name));
}

function replaced(value: JsonValue & object, name: string, inner: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.with(Number(name), inner);
  return { ...value, [name]: inner };
}

/** Any JSON, lone surrogates and U+0000 among its texts. */
function anyJson(): fc.Arbitrary<JsonValue> {
  return fc.oneof(
    fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>,
    ODD_TEXT,
    fc.constantFrom('\ud800', 1e308, -1, 2 ** 53, 0.1, '2026-02-30T00:00:00Z', '2026-01-01T00:00:00+23:59'),
  );
}

function plainText(): fc.Arbitrary<string> {
  return fc.string({ maxLength: 12 });
}
