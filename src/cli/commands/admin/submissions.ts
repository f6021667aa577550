import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import {
  type EraseStatementResponse,
  EraseStatementResponseSchema,
  SubmissionService,
} from '../../../../gen/attestation/admin/v1/submissions_pb.js';
import { type Cli, print } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  printJson,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { assertSubmissionId } from '../../input/submission-id.js';
import { confirm } from '../../output/confirm.js';
import { addHelp } from '../../output/help.js';

const HELP = `
Erases the signed statement of a submission of any project, and its metadata: a public statement, or a private one that
names artifact or identity. Cannot be undone. The leaf, its inclusion and the witnesses remain, in the bundle and in
exports, which are written again; the audit log records it. Copies of the bundle that others hold keep the statement.
Erasing again changes nothing.
${ADMIN_HELP}`;

const EXAMPLES = [
  'attest submissions erase-statement sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  'attest submissions erase-statement sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --yes --json',
];

const { eraseStatement } = SubmissionService.method;

type Flags = AdminFlags & { yes?: boolean };

/** `attest submissions`. */
export function addSubmissions(program: Command, cli: Cli): void {
  const submissions = addHelp(program.command('submissions'), HELP, EXAMPLES);
  addHelp(addAdminFlags(submissions.command('erase-statement')), HELP, EXAMPLES)
    .description('erase the signed statement of a submission; this cannot be undone')
    .argument('<id>', 'submission ID, sub_...')
    .option('-y, --yes', 'do not ask for confirmation')
    .action((id: string, flags: Flags) => {
      assertSubmissionId(id);
      return withAdminApi(cli, flags, async (call) => {
        const question = `Erase the statement and the metadata of ${id} for good?`;
        if (!flags.yes) await confirm(cli, question, '--yes');
        show(cli, flags, await call(eraseStatement, { id }));
      });
    });
}

function show(cli: Cli, { json }: Flags, erased: EraseStatementResponse): void {
  const { id, statementErasedAt } = erased;
  if (json) printJson(cli, EraseStatementResponseSchema, erased);
  else
    print(
      cli,
      `${id}  statement erased at ${statementErasedAt && timestampDate(statementErasedAt).toISOString()}`,
    );
}
