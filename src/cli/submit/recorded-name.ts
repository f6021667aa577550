/** Under which name a file is recorded: in its metadata, its idempotency key and the path of its bundle. */
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';

/**
 * The path from the folder `cwd` to a file in it, with `/`; empty for `cwd` itself. Of a path that is absolute or leads out
 * of it, the last name alone, so that nothing else of the machine is recorded.
 */
export function recordedName(path: string, cwd: string): string {
  const absolute = resolve(cwd, path);
  const inside = relative(cwd, absolute);
  const isOutside =
    isAbsolute(path) || isAbsolute(inside) || inside === '..' || inside.startsWith(`..${sep}`);
  return isOutside ? basename(absolute) : inside.split(sep).join('/');
}

/** The name of the file at `inner` in a folder: the folder's, and its path in it. */
export function recordedNameIn(folder: string, inner: string, cwd: string): string {
  const name = recordedName(folder, cwd);
  return name === '' ? inner : `${name}/${inner}`;
}

/**
 * The default metadata: a package URL of type generic with the digest as its checksum. Folders are its namespace, as they
 * come before the name; a subpath would be a path within the file that has this checksum.
 */
export function defaultMetadata(name: string, sha256: string): JsonObject {
  const path = name.split('/').map(percentEncode).join('/');
  return { schema: 'purl', purl: `pkg:generic/${path}?checksum=sha256%3A${sha256}` };
}

/** All but letters, digits, `.`, `-`, `_` and `~`, as ECMA-427 has it; packageurl-js trims names and leaves more as it is. */
function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
