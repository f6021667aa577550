/** The issuers of CI services that sign tokens for everybody, and what trust rules of them need. */
type KnownIssuer = {
  readonly issuer: string;
  /** The claim that names a repository with its owner. */
  readonly repositoryClaim: string;
  /** The claims that a rule records unless it names others. */
  readonly recordedClaims: readonly string[];
  /** Whether a job gets one token for all its commands. */
  readonly reusableTokens: boolean;
  /** The claims that name an owner, with the form of what precedes the first `*` of a condition that does. */
  readonly owners: Readonly<Record<string, RegExp>>;
};

const PATH = /^[^/]+\//;
const WHOLE = /^[^/]+$/;

/** GitHub Actions. */
export const GITHUB: KnownIssuer = {
  issuer: 'https://token.actions.githubusercontent.com',
  repositoryClaim: 'repository',
  recordedClaims: ['repository', 'ref', 'sha', 'workflow_ref', 'run_id'],
  reusableTokens: false,
  owners: {
    repository: PATH,
    repository_id: WHOLE,
    repository_owner: WHOLE,
    repository_owner_id: WHOLE,
    workflow_ref: PATH,
    job_workflow_ref: PATH,
    sub: /^(?:[a-z_]+:)*[^:/]+\/./,
  },
};

/** GitLab CI at gitlab.com. Its other installations have the same claims. */
export const GITLAB: KnownIssuer = {
  issuer: 'https://gitlab.com',
  repositoryClaim: 'project_path',
  recordedClaims: ['project_path', 'ref', 'sha', 'pipeline_id', 'job_id'],
  reusableTokens: true,
  owners: {
    project_path: PATH,
    project_id: WHOLE,
    namespace_path: /^[^/]+(?:$|\/)/,
    namespace_id: WHOLE,
    sub: /^project_path:[^/]+\//,
  },
};

/** Returns the service that has this issuer; undefined of another. */
export function findKnownIssuer(issuer: string): KnownIssuer | undefined {
  return [GITHUB, GITLAB].find((known) => known.issuer === issuer);
}

/** Whether conditions leave everybody who gets tokens of a known issuer but some owners out. */
export function namesOwner({ owners }: KnownIssuer, conditions: Readonly<Record<string, string>>): boolean {
  return Object.entries(owners).some(([claim, form]) => {
    const condition = conditions[claim];
    if (condition === undefined) return false;
    const [start = '', ...rest] = condition.split('*');
    // Before a `*` the owner's name must have ended.
    return form.test(start) && (form !== WHOLE || rest.length === 0);
  });
}
