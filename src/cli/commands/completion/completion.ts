import { Argument, type Command } from 'commander';
import type { Cli } from '../../cli.js';
import { bashScript } from './bash-script.js';
import { type CommandNode, commandTree } from './command-tree.js';
import { fishScript } from './fish-script.js';
import { zshScript } from './zsh-script.js';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const satisfies Record<
  string,
  (nodes: readonly CommandNode[]) => string
>;

const HELP = `
The script knows the commands and flags of this version: write it anew after an update. It runs nothing of attest.

Examples:
  $ attest completion bash > ~/.local/share/bash-completion/completions/attest
  $ attest completion zsh > ~/.zfunc/_attest  # with fpath=(~/.zfunc $fpath) before compinit in ~/.zshrc
  $ attest completion fish > ~/.config/fish/completions/attest.fish`;

/** `attest completion`, of a program that has all commands. */
export function addCompletion(program: Command, cli: Cli): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'shell').choices(Object.keys(SCRIPTS)))
    .option('--json', 'print errors as JSON')
    .addHelpText('after', HELP)
    .action((shell: keyof typeof SCRIPTS) => {
      cli.stdout.write(SCRIPTS[shell](commandTree(program)));
    });
}
