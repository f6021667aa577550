import type { JsonObject } from '@bufbuild/protobuf';
import type { PresentFile } from '../../proof/set/compare-files.js';
import type { StatedFile } from '../submit/statement.js';

/**
 * What a reader makes of what a tool wrote: one artifact, or the entries of a set in the order of their paths, and the metadata
 * that describes it. `name` is what the output calls it, such as the file's path. `otherFiles`: of a public statement, its
 * further subjects.
 */
export type Results = {
  readonly name: string;
  readonly metadata: JsonObject;
  readonly otherFiles?: readonly StatedFile[];
} & ({ readonly artifact: { readonly sha256: string } } | { readonly entries: AsyncIterable<PresentFile> });
