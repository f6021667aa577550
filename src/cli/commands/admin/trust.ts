import { type Command, Option } from 'commander';
import {
  type TrustRule,
  TrustRuleSchema,
  TrustRuleService,
} from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import type { AdminCall } from '../../../client/admin.js';
import { type Cli, print } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  collectPages,
  printJson,
  printJsonList,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { environmentFlag } from '../../flags/client-flags.js';
import { addLimitFlags } from '../../flags/key-flags.js';
import { findOnlyProject } from '../../flags/only-project.js';
import { type TrustFlags, trustRule } from '../../flags/trust-flags.js';
import { addHelp } from '../../output/help.js';
import { ruleTable, ruleText } from '../../output/trust-text.js';

const HELP = `
A trust rule lets jobs of a CI exchange their OpenID Connect token for an API key of 15 minutes, so that the CI stores none.
Who submitted is in every statement then. Patterns: * stands for any characters, so write acme/*, not acme*.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest trust add --github acme/app',
  'attest trust add --github acme/app --claim ref=refs/heads/main --scope attestations:write',
  'attest trust add --gitlab acme/app --issuer https://gitlab.example.com',
  'attest trust add --issuer https://issuer.example.com --claim sub=release --record sub team',
  'attest trust list',
  'attest trust remove tru_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
];

const { createTrustRule, getTrustRule, listTrustRules, removeTrustRule } = TrustRuleService.method;

/** `attest trust`. */
export function addTrust(program: Command, cli: Cli): void {
  const trust = addHelp(program.command('trust'), HELP, EXAMPLES);
  const command = (name: string) => addHelp(addAdminFlags(trust.command(name)), HELP, EXAMPLES);
  const ofRule = (name: string) => command(name).argument('<id>', 'trust rule ID, tru_...');
  addRuleFlags(command('add'))
    .description('let jobs of a CI exchange their tokens for API keys')
    .action((flags: TrustFlags) => withAdminApi(cli, flags, (call) => add(cli, call, flags)));
  command('list')
    .description('list the rules in force, newest first')
    .option('--project <id>', 'only rules of this project')
    .action((flags: AdminFlags & { project?: string }) =>
      withAdminApi(cli, flags, (call) => list(cli, call, flags)),
    );
  ofRule('get')
    .description('show one rule')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, await call(getTrustRule, { id }))),
    );
  ofRule('remove')
    .description('remove a rule, and revoke the keys that were exchanged by it; this cannot be undone')
    .action((id: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => {
        const rule = await call(removeTrustRule, { id });
        if (flags.json) printJson(cli, TrustRuleSchema, rule);
        else print(cli, `${rule.id} is removed`);
      }),
    );
}

function addRuleFlags(command: Command): Command {
  const withIssuer = command
    .addOption(
      new Option('--github <repository>', 'repository of GitHub, owner/name or a pattern').conflicts(
        'gitlab',
      ),
    )
    .option('--gitlab <project>', 'project of GitLab, group/name or a pattern')
    .option('--issuer <url>', 'issuer of the tokens (default: that of GitHub or gitlab.com)')
    .option('--claim <name=pattern...>', 'further claims that the token must have')
    .option('--audience <text>', 'audience of the tokens (default: the address of the service)')
    .addOption(environmentFlag('environment of the keys').default('live'))
    .option('--project <id>', 'project of the rule (default: the only project)')
    .option('--scope <scope...>', 'scopes to grant (default: attestations:read attestations:write)')
    .option('--record <claim...>', 'claims to record in statements (default: by issuer)')
    .option('--reusable-tokens', 'let a token be exchanged more than once (default with --gitlab)');
  return addLimitFlags(withIssuer, { isNew: true });
}

async function add(cli: Cli, call: AdminCall, flags: TrustFlags): Promise<void> {
  const rule = trustRule(flags);
  const projectId = flags.project ?? (await findOnlyProject(call));
  show(cli, flags, await call(createTrustRule, { projectId, ...rule }));
}

async function list(
  cli: Cli,
  call: AdminCall,
  { json, project: projectId = '' }: AdminFlags & { project?: string },
): Promise<void> {
  const rules = await collectPages((page) => call(listTrustRules, { projectId, ...page }));
  if (json) printJsonList(cli, TrustRuleSchema, rules);
  else print(cli, rules.length === 0 ? 'no trust rules' : ruleTable(rules));
}

function show(cli: Cli, { json }: AdminFlags, rule: TrustRule): void {
  if (json) printJson(cli, TrustRuleSchema, rule);
  else print(cli, ruleText(rule));
}
