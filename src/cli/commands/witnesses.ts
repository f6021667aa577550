import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import {
  WitnessService,
  type WitnessStanding,
  WitnessStandingSchema,
} from '../../../gen/attestation/admin/v1/witnesses_pb.js';
import { type Cli, print, printable } from '../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  printJsonList,
  withAdminApi,
} from '../flags/admin-flags.js';
import { formatTable } from '../output/table.js';

const HELP = `${ADMIN_HELP}

Examples:
  $ attest witnesses list
  $ attest witnesses ask tsa`;

const { listWitnesses, askWitness } = WitnessService.method;

/** `attest witnesses`. */
export function addWitnesses(program: Command, cli: Cli): void {
  const witnesses = program
    .command('witnesses')
    .description('show how the witnesses stand, and have one asked at once')
    .addHelpText('after', HELP);
  const command = (name: string) => addAdminFlags(witnesses.command(name)).addHelpText('after', HELP);
  command('list')
    .description('show what each has vouched for, and when it is asked next')
    .action((flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, (await call(listWitnesses, {})).data)),
    );
  command('ask')
    .description('have a witness asked at once, about every log that it has not vouched for')
    .argument('<name>', 'its name in WITNESSES')
    .action((name: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, (await call(askWitness, { name })).data)),
    );
}

function show(cli: Cli, { json }: AdminFlags, standings: readonly WitnessStanding[]): void {
  if (json) printJsonList(cli, WitnessStandingSchema, standings);
  else print(cli, standings.length === 0 ? 'no witnesses' : standingsText(standings, cli.now()));
}

function standingsText(standings: readonly WitnessStanding[], now: Date): string {
  const rows = standings.map((standing) => [
    standing.name,
    standing.log,
    standing.required ? 'yes' : 'no',
    `${standing.coveredTreeSize} of ${standing.publishedTreeSize}`,
    standing.lastSuccessAt === undefined ? 'never' : timestampDate(standing.lastSuccessAt).toISOString(),
    String(standing.consecutiveFailures),
    nextText(standing, now),
    printable(standing.lastError),
  ]);
  const head = [
    'NAME',
    'LOG',
    'REQUIRED',
    'COVERS',
    'LAST SUCCESS',
    'FAILURES',
    'NEXT ATTEMPT',
    'LAST ERROR',
  ];
  return formatTable([head, ...rows]);
}

function nextText(standing: WitnessStanding, now: Date): string {
  const { coveredTreeSize, publishedTreeSize, nextAttemptAt, beingAsked } = standing;
  if (beingAsked) return 'in progress';
  if (coveredTreeSize >= publishedTreeSize) return 'at the next checkpoint';
  if (nextAttemptAt === undefined || timestampDate(nextAttemptAt) <= now) return 'now';
  return timestampDate(nextAttemptAt).toISOString();
}
