import type { Command } from 'commander';

/**
 * Appends `text` and examples to a command's help: those of `examples` that call this command, or one of its
 * subcommands. Each example is a command line that starts with `attest`.
 */
export function addHelp(command: Command, text: string, examples: readonly string[]): Command {
  return command.addHelpText('after', () => {
    const path = commandPath(command);
    const own = examples.filter((example) => `${example} `.startsWith(`${path} `));
    const title = own.length === 1 ? 'Example:' : 'Examples:';
    return [text, '', title, ...own.map((example) => `  $ ${example}`)].join('\n');
  });
}

function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
}
