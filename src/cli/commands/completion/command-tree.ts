/** The program's commands as completion scripts need them, read from commander's definitions. */
import type { Argument, Command, Option } from 'commander';

/** A flag: its names, `--output` and `-o`, and whether it takes a value. */
type Flag = {
  readonly names: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  /** The values; empty if any is permitted. */
  readonly choices: readonly string[];
};

/** A command, by its path from the program's name: `attest keys list`. */
export type CommandNode = {
  readonly path: string;
  readonly flags: readonly Flag[];
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  /** The values of its arguments; empty if any is permitted. */
  readonly choices: readonly string[];
};

/** The program and all its commands, each before its subcommands. */
export function commandTree(command: Command, before = ''): CommandNode[] {
  const path = `${before}${command.name()}`;
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command);
  const node: CommandNode = {
    path,
    flags: help.visibleOptions(command).map(flagOf),
    subcommands: subcommands.map((one) => ({ name: one.name(), description: one.description() })),
    choices: command.registeredArguments.flatMap(({ argChoices = [] }: Argument) => argChoices),
  };
  return [node, ...subcommands.flatMap((one) => commandTree(one, `${path} `))];
}

function flagOf({ long, short, description, required, optional, argChoices = [] }: Option): Flag {
  return {
    names: [long, short].filter((name) => name !== undefined),
    description,
    takesValue: required || optional,
    choices: argChoices,
  };
}
