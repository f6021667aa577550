import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CreateTrustRuleRequestSchema } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { type EnvironmentName, environmentNumber } from '../../protocol/environment.js';
import { GITHUB, GITLAB } from '../../protocol/known-issuers.js';
import { UsageError } from '../cli.js';
import type { AdminFlags } from './admin-flags.js';
import { type LimitFlags, limitFields } from './key-flags.js';

/** Flags of `attest trust add`. */
export type TrustFlags = AdminFlags &
  LimitFlags & {
    environment: EnvironmentName;
    project?: string;
    github?: string;
    gitlab?: string;
    issuer?: string;
    audience?: string;
    claim?: string[];
    scope?: string[];
    record?: string[];
    reusableTokens?: boolean;
  };

type Rule = Omit<MessageInitShape<typeof CreateTrustRuleRequestSchema>, '$typeName' | 'projectId'>;

/** The rule that the flags describe. Throws UsageError. */
export function trustRule(flags: TrustFlags): Rule {
  const { github, gitlab, issuer, claim = [], scope: scopes, record } = flags;
  const known = github === undefined ? GITLAB : GITHUB;
  const repository = github ?? gitlab;
  const conditions = {
    ...(repository !== undefined && { [known.repositoryClaim]: repository }),
    ...parseConditions('--claim', claim),
  };
  if (repository === undefined && issuer === undefined)
    throw new UsageError(
      'name whom to trust: --github owner/repository, --gitlab group/project or --issuer URL',
    );
  const preset = repository === undefined ? undefined : known;
  return {
    environment: environmentNumber(flags.environment),
    issuer: issuer ?? known.issuer,
    audience: flags.audience ?? '',
    conditions,
    limits: limitFields(flags),
    reusableTokens: flags.reusableTokens ?? preset?.reusableTokens ?? false,
    recordedClaims: record ?? [...(preset?.recordedClaims ?? [])],
    ...(scopes !== undefined && { scopes }),
  };
}

/** Conditions on claims, each as `name=pattern`. Throws UsageError, which calls a wrong one `what`. */
export function parseConditions(what: string, texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text) => {
    const at = text.indexOf('=');
    if (at < 1 || at === text.length - 1)
      throw new UsageError(`${what} ${text} is not of the form name=pattern`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}
