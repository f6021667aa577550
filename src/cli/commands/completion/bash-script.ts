import type { CommandNode } from './command-tree.js';

/**
 * A script that completes the program in bash 3.2 or newer. Where it proposes nothing, bash completes file names. All words are
 * names of commands and flags, and choices: they need no quotes.
 */
export function bashScript(nodes: readonly CommandNode[]): string {
  const values = nodes.flatMap(({ path, flags }) =>
    flags.filter(({ takesValue }) => takesValue).map(({ names, choices }) => ({ path, names, choices })),
  );
  const patterns = (path: string, names: readonly string[]) =>
    names.map((name) => `"${path} ${name}"`).join('|');
  return `# Completes attest in bash.
_attest() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" at=attest words= i
  # Bash makes words of their own of the equals sign and what follows it.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev="\${COMP_WORDS[COMP_CWORD - 2]}"; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${nodes
        .slice(1)
        .map(({ path }) => `"${path}"`)
        .join('|')}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$at $prev" in
${values
  .map(({ path, names, choices }) =>
    choices.length === 0
      ? `    ${patterns(path, names)}) return ;;`
      : `    ${patterns(path, names)}) COMPREPLY=($(compgen -W "${choices.join(' ')}" -- "$cur")); return ;;`,
  )
  .join('\n')}
  esac
  case "$cur" in
    -*) case "$at" in
${nodes.map(({ path, flags }) => `      "${path}") words="${flags.flatMap(({ names }) => names).join(' ')}" ;;`).join('\n')}
    esac ;;
    *) case "$at" in
${nodes
  .map(({ path, subcommands, choices }) => ({
    path,
    words: [...subcommands.map(({ name }) => name), ...choices],
  }))
  .filter(({ words }) => words.length > 0)
  .map(({ path, words }) => `      "${path}") words="${words.join(' ')}" ;;`)
  .join('\n')}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _attest attest
`;
}
