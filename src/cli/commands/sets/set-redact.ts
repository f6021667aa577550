import type { Command } from 'commander';
import { matchPatterns } from '../../../client/files/ignore-file.js';
import { redactSet } from '../../../proof/set/set-proof.js';
import { type Cli, print, printError } from '../../cli.js';
import { assertNew } from '../../output/write-output.js';
import { collectPattern } from '../../sets/folder-files.js';
import { openSet, writeWhole } from '../../sets/set-file.js';

type Flags = { keep: string[]; output: string; force?: boolean; json?: boolean };

/** `attest set redact`. */
export function addRedact(command: Command, cli: Cli): void {
  command
    .description('write the set with entries withheld, which leaves their hashes alone')
    .argument('<set>', 'set file')
    .requiredOption(
      '--keep <pattern>',
      'entries to keep, by the rules of .gitignore; repeatable',
      collectPattern,
    )
    .requiredOption('-o, --output <file>', 'output file')
    .option('--force', 'overwrite the output file')
    .option('--json', 'print what was written as JSON')
    .action((set: string, flags: Flags) => redact(cli, set, flags));
}

async function redact(cli: Cli, set: string, { keep, output, force, json }: Flags): Promise<void> {
  assertNew(output, { force });
  const isKept = matchPatterns(keep);
  const counts = { kept: 0, withheld: 0 };
  const text = async function* () {
    yield* redactSet(await openSet(set), (path) => {
      const keeps = isKept(path);
      counts[keeps ? 'kept' : 'withheld']++;
      return keeps;
    });
    if (counts.kept === 0) throw new Error(`no entry of ${set} matches --keep ${keep.join(' --keep ')}`);
  };
  await writeWhole(output, text(), { isNew: !force });
  if (json) print(cli, JSON.stringify({ file: output, ...counts }));
  else printError(cli, `wrote ${output}: ${counts.kept} entries are kept, ${counts.withheld} withheld now`);
}
