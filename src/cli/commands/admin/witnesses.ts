import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import {
  WitnessService,
  type WitnessStanding,
  WitnessStandingSchema,
} from '../../../../gen/attestation/admin/v1/witnesses_pb.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print } from '../../cli.js';
import {
  ADMIN_HELP,
  type AdminFlags,
  addAdminFlags,
  printJsonList,
  withAdminApi,
} from '../../flags/admin-flags.js';
import { addHelp } from '../../output/help.js';
import { formatTable } from '../../output/table.js';
import { addDeployContract } from './deploy-contract.js';

const EXAMPLES = [
  'attest witnesses list',
  'attest witnesses ask tsa',
  'attest witnesses deploy-contract --rpc-url https://rpc.example.com --key-file evm.key',
];

const { listWitnesses, askWitness } = WitnessService.method;

/** `attest witnesses`. */
export function addWitnesses(program: Command, cli: Cli): void {
  const witnesses = addHelp(program.command('witnesses'), ADMIN_HELP, EXAMPLES);
  const command = (name: string) => addHelp(addAdminFlags(witnesses.command(name)), ADMIN_HELP, EXAMPLES);
  command('list')
    .description('show the tree size that each witness covers, its failures and its next attempt')
    .action((flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, (await call(listWitnesses, {})).data)),
    );
  command('ask')
    .description('request signatures from a witness now, for every log with an uncovered checkpoint')
    .argument('<name>', 'name of the witness in WITNESSES')
    .action((name: string, flags: AdminFlags) =>
      withAdminApi(cli, flags, async (call) => show(cli, flags, (await call(askWitness, { name })).data)),
    );
  addDeployContract(witnesses, cli, EXAMPLES);
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
  const { coveredTreeSize, publishedTreeSize, nextAttemptAt, beingAsked, pendingRequests } = standing;
  if (beingAsked) return 'in progress';
  if (pendingRequests > 0) return `${pendingRequests} pending`;
  if (coveredTreeSize >= publishedTreeSize) return 'at the next checkpoint';
  if (nextAttemptAt === undefined || timestampDate(nextAttemptAt) <= now) return 'now';
  return timestampDate(nextAttemptAt).toISOString();
}
