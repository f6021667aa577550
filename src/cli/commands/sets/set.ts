import type { Command } from 'commander';
import type { Cli } from '../../cli.js';
import { addHelp } from '../../output/help.js';
import { addProof } from './set-proof.js';
import { addRedact } from './set-redact.js';
import { addShow } from './set-show.js';

const HELP = `
A set file is written by \`attest submit <folder>\`: with the bundle it proves every file of the folder. It is yours alone;
what others should see of it, these commands make: a bundle for one file, or the set with entries withheld, of which
only hashes are left. What was attested does not change.`;

const EXAMPLES = [
  'attest set proof run.set.json shots/a.png --bundle run.bundle.json -o a.bundle.json',
  "attest set redact run.set.json --keep 'public/**' -o public.set.json",
  'attest set show run.set.json',
  'attest set show run.set.json --json',
];

/** `attest set`. */
export function addSet(program: Command, cli: Cli): void {
  const set = addHelp(program.command('set'), HELP, EXAMPLES);
  const command = (name: string) => addHelp(set.command(name), HELP, EXAMPLES);
  addProof(command('proof'), cli);
  addRedact(command('redact'), cli);
  addShow(command('show'), cli);
}
