import { findTypeProblem } from './purl-types.js';

/** A purl's parts as they were given, decoded. */
type PurlParts = {
  type: string;
  namespace: string;
  name: string;
  version: string;
  qualifiers: Record<string, string>;
};

/** A mistake in a purl. Its message follows "is not a package URL: ". */
class PurlProblem extends Error {
  override readonly name = 'PurlProblem';
}

const TYPE = /^[a-z][a-z0-9.-]*$/;
const QUALIFIER_KEY = /^[a-z][a-z0-9._-]*$/;
const URL_TEXT = /^[\x21-\x7e]+$/;

const MAX_LENGTH = 4096;

/** Whether a text is a package URL by the purl specification (ECMA-427). */
export function isPurl(text: string): boolean {
  return findPurlProblem(text) === undefined;
}

/**
 * Returns why a text is not a package URL by the purl specification (ECMA-427) and the definition of its type;
 * undefined if it is one. The text is split here: packageurl-js goes through the WHATWG URL parser, which drops
 * whitespace, repairs escapes, reads + as a space and lets the last of two equal qualifiers win, and its rules of types
 * are others than those of the definitions.
 */
export function findPurlProblem(text: string): string | undefined {
  try {
    return findTypeProblem(splitPurl(text));
  } catch (error) {
    if (!(error instanceof PurlProblem)) throw error;
    return error.message;
  }
}

function splitPurl(text: string): PurlParts {
  if (text.length > MAX_LENGTH) throw new PurlProblem(`it is longer than ${MAX_LENGTH} characters`);
  if (!URL_TEXT.test(text)) throw new PurlProblem('it has spaces or characters that must be percent-encoded');
  const [beforeSubpath, subpath] = cut(text, text.lastIndexOf('#'));
  const [beforeQualifiers, qualifiers] = cut(beforeSubpath, beforeSubpath.lastIndexOf('?'));
  const [scheme, path] = cut(beforeQualifiers, beforeQualifiers.indexOf(':'));
  if (scheme.toLowerCase() !== 'pkg') throw new PurlProblem('it does not begin with pkg:');
  const location = path.replace(/^\/+/, '');
  const [rawType, rest] = cut(location, location.indexOf('/'));
  const type = rawType.toLowerCase();
  if (!TYPE.test(type)) throw new PurlProblem('its type must be letters, digits, . and -, from a letter on');
  const [names, version] = cut(rest, versionAt(rest));
  const segments = segmentsOf(names);
  const name = segments.pop() ?? '';
  if (name.trim() === '') throw new PurlProblem('it has no name');
  checkSegments('namespace', segments);
  checkSegments('subpath', segmentsOf(subpath));
  return {
    type,
    namespace: segments.join('/'),
    name,
    version: decode(version),
    qualifiers: splitQualifiers(qualifiers),
  };
}

/** The parts before and after a separator; the whole text and nothing if there is none. */
function cut(text: string, at: number): [before: string, after: string] {
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** Where the version's @ is. One that begins a namespace belongs to it: npm's scopes are often left unencoded. */
function versionAt(rest: string): number {
  const at = rest.lastIndexOf('@');
  const beginsSegment = at === 0 || rest[at - 1] === '/';
  if (beginsSegment && !rest.includes('/', at)) throw new PurlProblem('it has no name');
  return beginsSegment ? -1 : at;
}

function segmentsOf(path: string): string[] {
  const segments: string[] = [];
  for (let at = 0; at < path.length; ) {
    const slash = path.indexOf('/', at);
    const end = slash === -1 ? path.length : slash;
    if (end > at) segments.push(decode(path.slice(at, end)));
    at = end + 1;
  }
  return segments;
}

function checkSegments(component: string, segments: readonly string[]): void {
  if (segments.some((segment) => segment.includes('/'))) {
    throw new PurlProblem(`a segment of its ${component} holds an encoded /`);
  }
}

function splitQualifiers(text: string): Record<string, string> {
  if (text === '') return {};
  // No name of a member that every object inherits is a key by QUALIFIER_KEY, save as an own one.
  const qualifiers: Record<string, string> = {};
  for (const pair of text.split('&')) {
    const [rawKey, value] = cut(pair, pair.indexOf('='));
    const key = rawKey.toLowerCase();
    if (rawKey.length === pair.length) throw new PurlProblem('a qualifier has no =');
    if (!QUALIFIER_KEY.test(key)) {
      throw new PurlProblem('a qualifier must be named by letters, digits, ., - and _, from a letter on');
    }
    if (Object.hasOwn(qualifiers, key)) throw new PurlProblem('two qualifiers have the same name');
    qualifiers[key] = decode(value);
  }
  return qualifiers;
}

function decode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new PurlProblem('it has a % that encodes no UTF-8');
  }
}
