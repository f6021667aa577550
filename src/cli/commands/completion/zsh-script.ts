import type { CommandNode } from './command-tree.js';

/** A script that completes the program in zsh, with descriptions; a file of `$fpath`, or one to be sourced after compinit. */
export function zshScript(nodes: readonly CommandNode[]): string {
  return `#compdef attest
# Completes attest in zsh.
_attest() {
  local at=attest prev=\${words[CURRENT - 1]} word
  local -a proposals
  for word in "\${(@)words[2,CURRENT - 1]}"; do
    case "$at $word" in
      (${nodes
        .slice(1)
        .map(({ path }) => quote(path))
        .join('|')}) at="$at $word" ;;
    esac
  done
  if [[ $PREFIX == --*=* ]]; then
    prev=\${PREFIX%%=*}
    compset -P '*='
  fi
  case "$at $prev" in
${nodes.flatMap(valueCases).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    case $at in
${nodes.map(({ path, flags }) => `      (${quote(path)}) proposals=(${flags.flatMap(({ names, description }) => names.map((name) => described(name, description))).join(' ')}) ;;`).join('\n')}
    esac
    _describe -o option proposals
    return
  fi
  case $at in
${nodes
  .filter(({ subcommands }) => subcommands.length > 0)
  .map(
    ({ path, subcommands }) =>
      `    (${quote(path)}) proposals=(${subcommands.map(({ name, description }) => described(name, description)).join(' ')}) ;;`,
  )
  .join('\n')}
${nodes
  .filter(({ choices }) => choices.length > 0)
  .map(({ path, choices }) => `    (${quote(path)}) compadd -- ${choices.join(' ')}; return ;;`)
  .join('\n')}
    (*) _files; return ;;
  esac
  _describe command proposals
}
if [[ \${funcstack[1]} == _attest ]]; then _attest "$@"; else compdef _attest attest; fi
`;
}

function valueCases({ path, flags }: CommandNode): string[] {
  return flags
    .filter(({ takesValue }) => takesValue)
    .map(({ names, choices }) => {
      const complete = choices.length === 0 ? '_files' : `compadd -- ${choices.join(' ')}`;
      return `    (${names.map((name) => quote(`${path} ${name}`)).join('|')}) ${complete}; return ;;`;
    });
}

/** An entry of _describe: name, colon, description. */
function described(name: string, description: string): string {
  return quote(`${name.replaceAll(':', '\\:')}:${description.replaceAll('\n', ' ')}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
