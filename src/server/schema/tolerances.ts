import type { ErrorObject } from 'ajv/dist/2020.js';
import { isAbsent } from './absent.js';

/** A way to fail a schema that is accepted all the same. */
export type Tolerance = {
  /** What such metadata has, for a person. */
  what: string;
  /** Whether an error of ajv is of this kind. */
  covers: (error: ErrorObject) => boolean;
};

const RESOURCE_URI =
  /^\/(?:buildDefinition\/resolvedDependencies|runDetails\/(?:byproducts|builder\/builderDependencies))\/\d+\/uri$/;
const BYPRODUCT = /^\/runDetails\/byproducts\/\d+$/;

/**
 * The references of https://github.com/distribution/reference that name their registry, and a tag or a digest. Those with
 * the port of a registry are URIs by their form.
 */
const IMAGE_REFERENCE =
  /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+|localhost)(?:\/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)+(?::\w[\w.-]{0,127}|(?::\w[\w.-]{0,127})?@[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-f]{32,128})$/;
const MAX_REFERENCE_LENGTH = 512;

/** What large producers of provenance write against its specification. They sign it, so that nobody can correct it. */
const PROVENANCE: readonly Tolerance[] = [
  {
    what: 'runDetails.builder.id is empty, as BuildKit leaves it: it does not say who built',
    covers: ({ instancePath, data }) => instancePath === '/runDetails/builder/id' && data === '',
  },
  {
    what: 'a URI is an image reference without a scheme, as Google Cloud Build writes it',
    covers: ({ instancePath, keyword, data }) =>
      keyword === 'format' && RESOURCE_URI.test(instancePath) && isImageReference(String(data)),
  },
  {
    what: 'a byproduct is empty, as Google Cloud Build writes it',
    covers: ({ instancePath, keyword, data }) =>
      keyword === 'anyOf' && BYPRODUCT.test(instancePath) && isEmptyResource(data),
  },
];

/** The tolerances of schemas, by their names. Schemas of operators have none. */
export const TOLERANCES: ReadonlyMap<string, readonly Tolerance[]> = new Map([
  ['slsa.provenance.v1', PROVENANCE],
]);

function isImageReference(text: string): boolean {
  return text.length <= MAX_REFERENCE_LENGTH && IMAGE_REFERENCE.test(text);
}

/** Whether a resource says nothing: null and empty count as not given. */
function isEmptyResource(resource: unknown): boolean {
  return typeof resource === 'object' && resource !== null && Object.values(resource).every(isAbsent);
}
