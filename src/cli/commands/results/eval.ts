import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import type { Command } from 'commander';
import { printablePath } from '../../../proof/set/path.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { errnoReason } from '../../input/input-file.js';
import { addHelp } from '../../output/help.js';
import { readEvaluation } from '../../results/evaluation/read-evaluation.js';

const HELP = `
\`attest submit --eval\` attests the log of an evaluation with metadata that it makes of it, as a set that has each sample.
These commands show that metadata, the paths of the samples, and a sample's bytes as the set has them.`;

const EXAMPLES = [
  'attest eval show logs/arithmetic.eval',
  'attest eval list results_2026-11-26.json',
  'attest eval sample logs/arithmetic.eval samples/7_epoch_1.json -o sample.json',
];

/** `attest eval`. */
export function addEval(program: Command, cli: Cli): void {
  const command = addHelp(program.command('eval'), HELP, EXAMPLES);
  addHelp(command.command('show'), HELP, EXAMPLES)
    .description('print the metadata of a log')
    .argument('<log>', 'log of inspect_ai, results of lm-evaluation-harness, or output of promptfoo')
    .option('--json', 'print one line')
    .action((log: string, { json }: { json?: boolean }) => show(cli, log, json));
  addHelp(command.command('list'), HELP, EXAMPLES)
    .description('list the paths of what a log is made of')
    .argument('<log>', 'log, as above')
    .option('--json', 'print one line of JSON, with the paths as they are')
    .action((log: string, { json }: { json?: boolean }) => list(cli, log, json));
  addHelp(command.command('sample'), HELP, EXAMPLES)
    .description('write a sample of a log, with the bytes that its set has')
    .argument('<log>', 'log, as above')
    .argument('<path>', 'path of the sample in the set')
    .option('-o, --output <file>', 'output file, which must be new (default: standard output)')
    .action((log: string, path: string, { output }: { output?: string }) =>
      writeSample(cli, { log, path, output }),
    );
}

async function show(cli: Cli, log: string, json: boolean | undefined): Promise<void> {
  const metadata = await readEvaluation(log, async () => {});
  print(cli, JSON.stringify(metadata, null, json ? 0 : 2));
}

async function list(cli: Cli, log: string, json: boolean | undefined): Promise<void> {
  const paths: string[] = [];
  await readEvaluation(log, async ({ path }) => void paths.push(path));
  if (json) print(cli, JSON.stringify({ file: log, paths }));
  else for (const path of paths) print(cli, printablePath(path));
}

type Asked = { log: string; path: string; output: string | undefined };

async function writeSample(cli: Cli, { log, path, output }: Asked): Promise<void> {
  let found = false;
  await readEvaluation(log, async (part) => {
    if (part.path !== path || found) return;
    found = true;
    if (output === undefined) await writeTo(cli.stdout, part.pieces());
    else await writeFile(output, part.pieces());
  });
  if (!found)
    throw new UsageError(`${log} has no ${printablePath(path)}: attest eval list shows what it has`);
}

async function writeTo(
  stdout: Cli['stdout'],
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  for await (const piece of pieces) if (!stdout.write(piece)) await once(stdout, 'drain');
}

async function writeFile(
  path: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const file = await open(path, 'wx').catch((error: Error) => {
    throw new UsageError(`${path} cannot be written: ${errnoReason(error)}`);
  });
  try {
    for await (const piece of pieces) await file.writeFile(piece);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}
