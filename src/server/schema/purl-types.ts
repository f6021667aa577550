/** What the definition of a package type asks of its package URLs beyond the rules for all. */
type TypeRules = {
  /** Whether the type forbids a namespace, or what its required namespace names; undefined where it is optional. */
  namespace?: 'none' | { names: string };
  /** The qualifiers without which the type identifies nothing. */
  qualifiers?: readonly string[];
  /** What a name or a version must be if it is not so; undefined if it is. */
  checkName?: (name: string) => string | undefined;
  checkVersion?: (version: string) => string | undefined;
};

const NO_NAMESPACE: TypeRules = { namespace: 'none' };
const VENDOR: TypeRules = { namespace: { names: 'vendor' } };
const OWNER: TypeRules = { namespace: { names: 'user or organization' } };

/**
 * The rules of the registered types whose definition (https://github.com/package-url/purl-spec/tree/main/types, MIT, of
 * August 2026) has any. golang has none here: its definition requires a namespace, but scanners name modules of one
 * segment without it, as in pkg:golang/stdlib.
 */
const TYPES: Readonly<Record<string, TypeRules>> = {
  alpm: VENDOR,
  apk: VENDOR,
  bazel: NO_NAMESPACE,
  bitbucket: OWNER,
  bitnami: NO_NAMESPACE,
  cargo: NO_NAMESPACE,
  'chrome-extension': {
    namespace: 'none',
    checkName: (name) => (/^[a-p]{32}$/i.test(name) ? undefined : 'must be 32 letters from a to p'),
    checkVersion: (version) =>
      /^\d+(?:\.\d+){0,3}$/.test(version) ? undefined : 'must be one to four numbers with . between them',
  },
  cocoapods: NO_NAMESPACE,
  composer: VENDOR,
  conda: NO_NAMESPACE,
  cpan: {
    checkName: (name) =>
      name.includes('::') ? 'must be that of a distribution, with - in place of ::' : undefined,
  },
  cran: NO_NAMESPACE,
  deb: VENDOR,
  gem: NO_NAMESPACE,
  git: { namespace: { names: 'host' } },
  github: OWNER,
  hackage: NO_NAMESPACE,
  huggingface: OWNER,
  julia: { namespace: 'none', qualifiers: ['uuid'] },
  maven: { namespace: { names: 'group id' } },
  mlflow: NO_NAMESPACE,
  nuget: NO_NAMESPACE,
  oci: NO_NAMESPACE,
  opam: NO_NAMESPACE,
  otp: NO_NAMESPACE,
  pub: {
    namespace: 'none',
    // Its canonical form has small letters, and _ in place of -.
    checkName: (name) => (/^[a-z0-9_-]+$/i.test(name) ? undefined : 'must be letters, digits and _'),
  },
  pypi: NO_NAMESPACE,
  qpkg: VENDOR,
  rpm: VENDOR,
  swid: { qualifiers: ['tag_id'] },
  swift: { namespace: { names: 'host and owner of the source' } },
  vcpkg: NO_NAMESPACE,
  'vscode-extension': { namespace: { names: 'publisher' } },
};

/** The decoded parts of a package URL that rules of types are about; what it lacks is empty. */
type TypedParts = {
  type: string;
  namespace: string;
  name: string;
  version: string;
  qualifiers: Readonly<Record<string, string>>;
};

/** Returns which rule of its type a package URL breaks, as in "a gem purl has no namespace"; undefined if none. */
export function findTypeProblem(parts: TypedParts): string | undefined {
  const { type, namespace, name, version } = parts;
  const rules = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (rules === undefined) return undefined;
  const purl = `${/^(?:[aeiou]|rpm$)/.test(type) ? 'an' : 'a'} ${type} purl`;
  if (rules.namespace === 'none' && namespace !== '') return `${purl} has no namespace`;
  if (typeof rules.namespace === 'object' && namespace === '') {
    return `${purl} needs a namespace (${rules.namespace.names})`;
  }
  const missing = rules.qualifiers?.find((key) => (parts.qualifiers[key] ?? '') === '');
  if (missing !== undefined) return `${purl} needs the qualifier ${missing}`;
  const nameProblem = rules.checkName?.(name);
  if (nameProblem !== undefined) return `the name of ${purl} ${nameProblem}`;
  const versionProblem = version === '' ? undefined : rules.checkVersion?.(version);
  return versionProblem === undefined ? undefined : `the version of ${purl} ${versionProblem}`;
}
