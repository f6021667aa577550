import type { DescEnum, DescMessage, JsonObject } from '@bufbuild/protobuf';
import { findWellKnownSchema } from './scalar.js';

/** Direction of a message: request schemas are stricter, responses may get new members. */
export type Direction = 'request' | 'response';

/** The components section of a document, filled while operations are described. */
export type Components = {
  readonly schemas: Map<string, JsonObject>;
  readonly responses: Map<string, JsonObject>;
  readonly examples: Map<string, JsonObject>;
  /** The name of a type's schema. */
  readonly nameOf: (desc: DescMessage | DescEnum, direction: Direction) => string;
};

/** Creates empty components for a document whose responses consist of `outputs`. */
export function createComponents(outputs: readonly DescMessage[]): Components {
  const inAnswers = reachable(outputs);
  const owners = new Map<string, string>();
  return {
    schemas: new Map(),
    responses: new Map(),
    examples: new Map(),
    nameOf: (desc, direction) => {
      const isShared = desc.kind === 'message' && direction === 'request' && inAnswers.has(desc.typeName);
      return uniqueName(owners, desc) + (isShared ? 'Input' : '');
    },
  };
}

/** Refers to a component by its section and name. */
export function refTo(section: string, name: string): JsonObject {
  return { $ref: `#/components/${section}/${name}` };
}

/** Names of these message types and of all nested ones. */
function reachable(descs: readonly DescMessage[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (desc: DescMessage): void => {
    if (found.has(desc.typeName) || findWellKnownSchema(desc) !== undefined) return;
    found.add(desc.typeName);
    for (const field of desc.fields) if (field.message !== undefined) visit(field.message);
  };
  for (const desc of descs) visit(desc);
  return found;
}

/**
 * The type's name; with its package's if another type has the same name. `Response` becomes `Reply`, because generators
 * have types of their own called like the operation and `Response`.
 */
function uniqueName(owners: Map<string, string>, desc: DescMessage | DescEnum): string {
  const { typeName } = desc;
  const name = desc.name.replace(/Response$/, 'Reply');
  const owner = owners.get(name) ?? typeName;
  owners.set(name, owner);
  return owner === typeName ? name : typeName.replaceAll('.', '_');
}
