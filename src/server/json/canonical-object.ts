import type { JsonObject } from '@bufbuild/protobuf';

const TEXT = Symbol('text');

/** What stands behind a {@link canonicalObject}. */
type Source = { readonly text: string; parsed?: JsonObject };

const HANDLER: ProxyHandler<Source> = {
  get: (source, name) => (name === TEXT ? source.text : Reflect.get(parsedOf(source), name)),
  has: (source, name) => Reflect.has(parsedOf(source), name),
  ownKeys: (source) => Reflect.ownKeys(parsedOf(source)),
  getOwnPropertyDescriptor: (source, name) => Reflect.getOwnPropertyDescriptor(parsedOf(source), name),
  set: () => false,
};

/**
 * The JSON object of a text in canonical JSON (RFC 8785), for a message's free-form field. The REST surface sends the
 * text as it is; it is parsed when another surface looks inside. The object cannot be changed.
 */
export function canonicalObject(text: string): JsonObject {
  return new Proxy<Source>({ text }, HANDLER) as unknown as JsonObject;
}

/** The text that an object was made from by {@link canonicalObject}. */
export function findCanonicalText(object: object): string | undefined {
  return (object as { [TEXT]?: string })[TEXT];
}

function parsedOf(source: Source): JsonObject {
  source.parsed ??= JSON.parse(source.text) as JsonObject;
  return source.parsed;
}
