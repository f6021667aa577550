import type { CommandNode } from './command-tree.js';

/** A script that completes the program in fish 3 or newer, with descriptions. */
export function fishScript(nodes: readonly CommandNode[]): string {
  const lines = nodes.flatMap(({ path, flags, subcommands, choices }) => {
    const start = `complete -c attest -n ${quote(`__attest_at ${quote(path)}`)}`;
    return [
      ...subcommands.map(({ name, description }) => `${start} -f -a ${name} -d ${quote(description)}`),
      ...(choices.length === 0 ? [] : [`${start} -f -a ${quote(choices.join(' '))}`]),
      ...flags.map((flag) => `${start} ${flagOptions(flag)} -d ${quote(flag.description)}`),
    ];
  });
  return `# Completes attest in fish.
function __attest_at -d 'Whether the command line calls this command'
  set -l at attest
  set -l given (commandline -opc)
  set -e given[1]
  for word in $given
    if contains -- "$at $word" ${nodes
      .slice(1)
      .map(({ path }) => quote(path))
      .join(' ')}
      set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}

function flagOptions({ names, takesValue, choices }: CommandNode['flags'][number]): string {
  const own = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  if (!takesValue) return own.join(' ');
  return [...own, choices.length === 0 ? '-r' : `-x -a ${quote(choices.join(' '))}`].join(' ');
}

/** Within single quotes fish reads a backslash before a quote or a backslash. */
function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', ' ')}'`;
}
