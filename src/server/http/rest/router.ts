import { decodePercent } from '../request-target.js';
import { patternOf, type Template } from './http-rule.js';

/** The target of a path, and the path's segments as sent, without the verb. */
export type Match<T> = { target: T; segments: readonly string[] };

/** Routes requests to targets by method and path. */
export type Router<T> = {
  /** Throws when a template for the same method matches the same paths. */
  add: (method: string, template: Template, target: T) => void;
  /**
   * The target for a path without its query. A literal segment beats `*` beats `**`, from left to right; a verb beats
   * a colon in the last segment; GET serves HEAD, and a target for the method `*` serves all other methods.
   */
  find: (method: string, path: string) => Match<T> | undefined;
  /** The methods that the path has, as the `Allow` header names them; empty when no template matches it. */
  allowedMethods: (path: string) => string[];
};

type Entry<T> = { template: Template; target: T };
/** Targets by method. */
type Leaf<T> = Map<string, Entry<T>>;
type Node<T> = {
  literals: Map<string, Node<T>>;
  one: Node<T> | undefined;
  /** The leaves of templates that end here and of those that go on with `**`, by verb; '' is none. */
  ends: Map<string, Leaf<T>>;
  rests: Map<string, Leaf<T>>;
};

/** A path taken apart: its segments as sent, and decoded for comparing (undefined when malformed). */
type Path = { raw: readonly string[]; decoded: readonly (string | undefined)[]; verb: string };

const ANY_METHOD = '*';
const METHOD_ORDER = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Makes an empty router. */
export function createRouter<T>(): Router<T> {
  const root = newNode<T>();
  const verbs = new Set<string>();
  return {
    add: (method, template, target) => {
      if (template.verb !== undefined) verbs.add(template.verb);
      insert(root, method, { template, target });
    },
    find: (method, path) => {
      for (const candidate of readings(path, verbs)) {
        const entry = search(root, candidate, 0, (leaf) => findByMethod(leaf, method));
        if (entry !== undefined) return { target: entry.target, segments: candidate.raw };
      }
      return undefined;
    },
    allowedMethods: (path) => {
      const methods = new Set<string>();
      for (const candidate of readings(path, verbs)) {
        search(root, candidate, 0, (leaf) => collectMethods(leaf, methods));
      }
      return methods.size === 0 ? [] : sortMethods(methods.add('OPTIONS'));
    },
  };
}

function newNode<T>(): Node<T> {
  return { literals: new Map(), one: undefined, ends: new Map(), rests: new Map() };
}

function insert<T>(root: Node<T>, method: string, entry: Entry<T>): void {
  const { template } = entry;
  let node = root;
  let leaves = root.ends;
  for (const segment of template.segments) {
    if (segment.kind === 'rest') {
      leaves = node.rests;
      break;
    }
    node = segment.kind === 'one' ? oneChild(node) : literalChild(node, segment.text);
    leaves = node.ends;
  }
  const verb = template.verb ?? '';
  const leaf: Leaf<T> = leaves.get(verb) ?? new Map();
  leaves.set(verb, leaf);
  const other = leaf.get(method);
  if (other !== undefined) {
    const both = `${JSON.stringify(other.template.source)} and ${JSON.stringify(template.source)}`;
    throw new Error(`path templates ${both} both match ${method} ${patternOf(template)}`);
  }
  leaf.set(method, entry);
}

function oneChild<T>(node: Node<T>): Node<T> {
  node.one ??= newNode();
  return node.one;
}

function literalChild<T>(node: Node<T>, text: string): Node<T> {
  const child = node.literals.get(text) ?? newNode<T>();
  node.literals.set(text, child);
  return child;
}

/**
 * The readings of a path: with the text after the last colon as a verb, if a template has that verb, then without.
 * Only a colon that is sent as such can set off a verb.
 */
function readings(path: string, verbs: ReadonlySet<string>): Path[] {
  if (!path.startsWith('/')) return [];
  const raw = path.slice(1).split('/');
  const decoded = path.includes('%') ? raw.map(decodePercent) : raw;
  const plain: Path = { raw, decoded, verb: '' };
  const last = raw[raw.length - 1] as string;
  const colon = last.lastIndexOf(':');
  if (colon < 0) return [plain];
  const verb = decodePercent(last.slice(colon + 1));
  if (verb === undefined || !verbs.has(verb)) return [plain];
  const stem = last.slice(0, colon);
  return [{ raw: raw.with(-1, stem), decoded: decoded.with(-1, decodePercent(stem)), verb }, plain];
}

/** The first leaf, most specific first, for which `accept` returns something. */
function search<T, R>(
  node: Node<T>,
  path: Path,
  at: number,
  accept: (leaf: Leaf<T>) => R | undefined,
): R | undefined {
  if (at === path.decoded.length)
    return acceptLeaf(node.ends, path, accept) ?? acceptLeaf(node.rests, path, accept);
  const segment = path.decoded[at];
  const literal = segment === undefined ? undefined : node.literals.get(segment);
  const byLiteral = literal && search(literal, path, at + 1, accept);
  if (byLiteral !== undefined) return byLiteral;
  // No segment is empty: `/books/` is not a book without a name.
  const byOne = node.one && path.raw[at] !== '' ? search(node.one, path, at + 1, accept) : undefined;
  return byOne ?? acceptLeaf(node.rests, path, accept);
}

function acceptLeaf<T, R>(
  leaves: ReadonlyMap<string, Leaf<T>>,
  path: Path,
  accept: (leaf: Leaf<T>) => R | undefined,
): R | undefined {
  const leaf = leaves.get(path.verb);
  return leaf && accept(leaf);
}

function findByMethod<T>(leaf: Leaf<T>, method: string): Entry<T> | undefined {
  const exact = leaf.get(method) ?? (method === 'HEAD' ? leaf.get('GET') : undefined);
  return exact ?? (method === 'OPTIONS' ? undefined : leaf.get(ANY_METHOD));
}

/** Collects a leaf's methods; returns undefined, so that the search continues. */
function collectMethods<T>(leaf: Leaf<T>, methods: Set<string>): undefined {
  for (const method of leaf.has(ANY_METHOD) ? METHOD_ORDER : leaf.keys()) methods.add(method);
  if (methods.has('GET')) methods.add('HEAD');
}

function sortMethods(methods: ReadonlySet<string>): string[] {
  const known = METHOD_ORDER.filter((method) => methods.has(method));
  return [...known, ...[...methods].filter((method) => !METHOD_ORDER.includes(method)).sort()];
}
